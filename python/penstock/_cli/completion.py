"""`penstock completion`: completion of commands and options in the shell."""

from __future__ import annotations

import argparse

HELP = "Print a script that completes commands and options in bash, zsh or fish."

_HOW = {
    "bash": 'eval "$(penstock completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(penstock completion zsh)"       # in ~/.zshrc, after compinit',
    "fish": "penstock completion fish | source       # in ~/.config/fish/config.fish",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("shell", choices=sorted(_HOW))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "To use it:\n  " + "\n  ".join(_HOW.values())


def run(given: argparse.Namespace) -> int:
    """Print the script for a shell."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[given.shell](), end="")
    return 0


def _commands() -> dict[str, tuple[str, list[str], list[str]]]:
    """For each command its help, its options, and the words it takes instead of files."""
    from penstock._cli import parser

    [subparsers] = [
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    ]
    helps = {action.dest: action.help or "" for action in subparsers._choices_actions}
    found = {}
    for name, command in subparsers.choices.items():
        options = [text for action in command._actions for text in action.option_strings]
        words = [
            str(word)
            for action in command._actions
            if not action.option_strings
            for word in action.choices or ()
        ]
        found[name] = (helps[name], options, words)
    return found


def _bash() -> str:
    commands = _commands()
    cases = "".join(
        f'    {name}) words="{" ".join(options + words)}" ;;\n'
        for name, (_, options, words) in commands.items()
    )
    return f"""_penstock() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _penstock penstock
"""


def _zsh() -> str:
    commands = _commands()
    listed = "\n".join(f"    '{name}:{_plain(text)}'" for name, (text, _, _) in commands.items())
    cases = "\n".join(
        f"    {name}) compadd -- {' '.join(options + words)}; _files ;;"
        for name, (_, options, words) in commands.items()
    )
    return f"""_penstock() {{
  local -a commands
  commands=(
{listed}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case $words[2] in
{cases}
  esac
}}
compdef _penstock penstock
"""


def _fish() -> str:
    lines = []
    for name, (text, options, words) in _commands().items():
        lines.append(
            f"complete -c penstock -n __fish_use_subcommand -f -a {name} -d '{_plain(text)}'"
        )
        within = f"complete -c penstock -n '__fish_seen_subcommand_from {name}'"
        for option in options:
            kind = "-l" if option.startswith("--") else "-s"
            lines.append(f"{within} {kind} {option.lstrip('-')}")
        if words:
            lines.append(f"{within} -f -a '{' '.join(words)}'")
    return "\n".join([*lines, ""])


def _plain(text: str) -> str:
    """A text that shells need no quotes for, beside those around it."""
    return text.replace("'", "").replace(":", " -")
