"""KeyboardInterrupt at every point at which Python may raise it inside of the package."""

import dis
import inspect
import os
import sys

import penstock

PACKAGE = os.path.dirname(penstock.__file__) + os.sep


class Interrupt:
    """Raises KeyboardInterrupt at one point of the code in its `with` block.

    Python handles signals where a function begins, after a call, and where a loop jumps back. With
    the number of the moment going up from 0, each has its turn; `came` tells when there was none.

    Args:
        moment: Which of the moments.
    """

    def __init__(self, moment):
        self.left = moment
        self.came = False
        self.at = ""
        self._last = {}

    def __enter__(self):
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _trace(self, frame, event, _):
        if self.came or not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "call":
            # Closing a generator enters it too, but errors are ignored there.
            if not frame.f_code.co_flags & inspect.CO_GENERATOR:
                self._moment(frame)
        elif event == "opcode":
            code, now = frame.f_code.co_code, frame.f_lasti
            before = self._last.get(id(frame))
            self._last[id(frame)] = now
            called = before is not None and dis.opname[code[before]].startswith("CALL")
            if called or dis.opname[code[now]].startswith(("JUMP_BACKWARD", "JUMP_ABSOLUTE")):
                self._moment(frame)
        elif event == "return":
            self._last.pop(id(frame), None)
        return self._trace

    def _moment(self, frame):
        if self.left:
            self.left -= 1
            return
        self.came = True
        self.at = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        raise KeyboardInterrupt


def every_moment(run, first=0, step=1):
    """Run with an interrupt at each point (or every `step`th), until there are no more.

    `run` is given the interrupt, to enter it around the calls that are asked about.
    """
    moment = first
    while True:
        interrupt = Interrupt(moment)
        run(interrupt)
        if not interrupt.came:
            return moment
        moment += step
