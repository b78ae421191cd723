"""python3 -m memdiag."""

from memdiag.cli import run

if __name__ == "__main__":
    run()
