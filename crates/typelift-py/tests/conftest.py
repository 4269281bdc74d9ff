"""Fixtures that all tests share."""
import signal

# A shell that starts the tests in the background makes them ignore Ctrl-C, and Python does not change that.
signal.signal(signal.SIGINT, signal.default_int_handler)
