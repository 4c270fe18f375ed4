//! Tools for agents that can't flood a context and can't leave the workspace.
