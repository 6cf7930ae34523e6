HELP = "x"


def add_arguments(parser):
    pass


def run(given):
    return 0
