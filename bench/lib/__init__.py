"""What the benches share. `Bench` is where to begin reading."""

from .bench import Bench
from .cell import ALL, DRIVES, SIZES, Cell, measure_goals
from .disk import Disk
from .fio import Reader, job
from .judge import COLUMNS, Machine, event, judge, rows
from .numbers import losses, percentile, rate, spread
from .places import DISCARD, GIB, KIB, MIB, Drive, figure, fill, folder, loop, reserve, size_of, sync, tree
from .programs import ROOT, TRIMBENCH, Failed, call, report, running, trimbench
from .servers import Group, Postgres, db_bench, find, mariadb
