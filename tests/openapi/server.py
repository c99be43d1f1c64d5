"""A real `dualtrack dev` on a free port, in a folder of its own."""

import os
import signal
import subprocess
import tempfile


class Server:
    """Started when it is made, ended by `stop`."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="dualtrack-openapi-")
        program = os.environ["DUALTRACK_BIN"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("DUALTRACK_")}
        self.process = subprocess.Popen(
            [program, "dev", "--listen", "127.0.0.1:0", "--data", os.path.join(self.folder.name, "data")],
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        self.url = None
        for line in self.process.stdout:
            for word in line.replace(",", " ").split():
                if self.url is None and word.startswith("http://"):
                    self.url = word
            if line.strip() == "ready":
                return
        raise RuntimeError(f"dualtrack dev ended with {self.process.wait()} before it was ready")

    def stop(self):
        """Ends it politely; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.folder.cleanup()
        return code
