//! When the operations of an open loop are meant to start. Pure.
