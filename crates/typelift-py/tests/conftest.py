"""What all tests share."""
import signal

# Where a shell starts the tests in the background they would ignore Ctrl-C, and Python leaves that as it is.
signal.signal(signal.SIGINT, signal.default_int_handler)
