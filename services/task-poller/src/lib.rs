//! The task-poller service
