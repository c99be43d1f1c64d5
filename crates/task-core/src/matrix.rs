//! The matrix states × kinds (design.md §5): which kind is accepted in which state.
//!
//! It is data, so that it can be printed into a committed file and so that a search can flip every
//! cell and see whether the flip is noticed.

use task_events::{Kind, TaskState};

/// A column of the matrix: what the fold knows of the record's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// Not an open task: never created, or closed and forgotten.
    Unknown,
    /// CREATED
    Created,
    /// ASSIGNED
    Assigned,
    /// EXECUTING
    Executing,
    /// FAILED
    Failed,
    /// LOST
    Lost,
    /// RETRY_APPROVED
    RetryApproved,
    /// REPLAY_PLANNED
    ReplayPlanned,
    /// RETRYING
    Retrying,
}

impl Column {
    /// Every column, in matrix order.
    pub const ALL: [Column; 9] = [
        Self::Unknown,
        Self::Created,
        Self::Assigned,
        Self::Executing,
        Self::Failed,
        Self::Lost,
        Self::RetryApproved,
        Self::ReplayPlanned,
        Self::Retrying,
    ];

    /// The column of a state; terminal states have none of their own, their tasks are forgotten.
    pub const fn of(state: TaskState) -> Self {
        match state {
            TaskState::Created => Self::Created,
            TaskState::Assigned => Self::Assigned,
            TaskState::Executing => Self::Executing,
            TaskState::Failed => Self::Failed,
            TaskState::Lost => Self::Lost,
            TaskState::RetryApproved => Self::RetryApproved,
            TaskState::ReplayPlanned => Self::ReplayPlanned,
            TaskState::Retrying => Self::Retrying,
            TaskState::Success | TaskState::FailedPermanently | TaskState::Cancelled => Self::Unknown,
        }
    }

    /// Heading of the column.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Created => "CREATED",
            Self::Assigned => "ASSIGNED",
            Self::Executing => "EXECUTING",
            Self::Failed => "FAILED",
            Self::Lost => "LOST",
            Self::RetryApproved => "RETRY_APPROVED",
            Self::ReplayPlanned => "REPLAY_PLANNED",
            Self::Retrying => "RETRYING",
        }
    }
}

/// Whether a kind is accepted in a state, all other checks apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Never.
    No,
    /// Yes.
    Yes,
    /// Only from an attempt that TaskLost closed (*late*).
    Late,
}

/// The matrix. Control kinds, seals and RejectedReport do not depend on a task's state and have
/// no row of cells that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    cells: [[Cell; 9]; Kind::ALL.len()],
}

impl Matrix {
    /// The matrix of design.md §5.
    pub const fn standard() -> Self {
        let mut cells = [[Cell::No; 9]; Kind::ALL.len()];
        let mut k = 0;
        while k < Kind::ALL.len() {
            let mut c = 0;
            while c < 9 {
                cells[k][c] = standard_cell(Kind::ALL[k], Column::ALL[c]);
                c += 1;
            }
            k += 1;
        }
        Self { cells }
    }

    /// One cell.
    #[inline]
    pub const fn cell(&self, kind: Kind, column: Column) -> Cell {
        self.cells[kind as usize][column as usize]
    }

    /// A copy with one cell changed, for the mutation table.
    pub fn with(&self, kind: Kind, column: Column, cell: Cell) -> Self {
        let mut mutant = self.clone();
        mutant.cells[kind as usize][column as usize] = cell;
        mutant
    }

    /// The matrix as the table of `docs/matrix.md`.
    pub fn to_markdown(&self) -> String {
        let mut out = String::from("| kind |");
        for column in Column::ALL {
            out += &format!(" {} |", column.as_str());
        }
        out += "\n|---|";
        out += &":-:|".repeat(Column::ALL.len());
        out.push('\n');
        for &kind in Kind::ALL {
            out += &format!("| {kind} |");
            for column in Column::ALL {
                out += match self.cell(kind, column) {
                    Cell::No => "   |",
                    Cell::Yes => " x |",
                    Cell::Late => " late |",
                };
            }
            out.push('\n');
        }
        out
    }
}

const fn standard_cell(kind: Kind, column: Column) -> Cell {
    use Column as C;
    let allowed = match kind {
        Kind::TaskCreated | Kind::TaskReplayRequested | Kind::TaskReviewed => matches!(column, C::Unknown),
        Kind::TaskAssigned => matches!(column, C::Created | C::Retrying),
        Kind::TaskStarted | Kind::TaskReleased => matches!(column, C::Assigned),
        Kind::TaskStepCompleted => matches!(column, C::Executing),
        Kind::TaskCompleted => {
            if matches!(column, C::Lost | C::RetryApproved | C::ReplayPlanned | C::Retrying) {
                return Cell::Late;
            }
            matches!(column, C::Assigned | C::Executing)
        }
        Kind::TaskFailed | Kind::TaskLost | Kind::TaskFailureAnalysis => matches!(column, C::Assigned | C::Executing),
        Kind::TaskTimedOut => matches!(column, C::Created | C::Retrying | C::Assigned | C::Executing),
        Kind::TaskRetryApproved | Kind::TaskFailedPermanently | Kind::TaskSkippedByPolicy | Kind::WorkerQuarantined => {
            matches!(column, C::Failed | C::Lost)
        }
        Kind::TaskReplayPlanned => matches!(column, C::RetryApproved),
        Kind::TaskRetried => matches!(column, C::ReplayPlanned),
        Kind::TaskCancelRequested | Kind::TaskCancelled | Kind::TaskOverdue => !matches!(column, C::Unknown),
        Kind::RejectedReport
        | Kind::WorkerReleased
        | Kind::QueuePaused
        | Kind::QueueResumed
        | Kind::BacklogAlarm
        | Kind::OwnershipClaimed
        | Kind::OwnershipRenewed
        | Kind::RulesActivated
        | Kind::LogSealed => true,
    };
    if allowed { Cell::Yes } else { Cell::No }
}
