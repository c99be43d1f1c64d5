#!/usr/bin/env bash
# Certificates for engines of tests and of `make stack`: an authority, a server certificate for
# localhost and 127.0.0.1, a client certificate, a user and a random password. Never for production.
#
#   scripts/certificates.sh DIRECTORY   makes ca.pem, server.{pem,key,p12}, client.{pem,key},
#                                       user, password (mode 600)
set -euo pipefail
[ $# = 1 ] || { echo "usage: certificates.sh DIRECTORY" >&2; exit 1; }
command -v openssl >/dev/null || { echo "certificates.sh: 'openssl' is missing: apt-get install openssl" >&2; exit 1; }
umask 077
mkdir -p "$1"
cd "$1"

printf 'dualtrack' >user
openssl rand -hex 16 | tr -d '\n' >password

quiet() { "$@" 2>openssl.log || { cat openssl.log >&2; exit 1; }; }
quiet openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=dualtrack test authority" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" -keyout ca.key -out ca.pem
leaf() { # file, common name, extended key usage, names
    quiet openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$2" -keyout "$1.key" -out "$1.csr"
    printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=%s\n%s' "$3" "$4" >"$1.ext"
    quiet openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.pem"
    rm "$1.csr" "$1.ext"
}
leaf server localhost serverAuth 'subjectAltName=DNS:localhost,IP:127.0.0.1'
leaf client dualtrack clientAuth ''
quiet openssl pkcs12 -export -in server.pem -inkey server.key -certfile ca.pem -name server -passout file:password -out server.p12
rm -f ca.key ca.srl openssl.log
