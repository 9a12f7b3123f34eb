/** Apart from the rest, so that it can be built as one file: a hundred modules, of which most read configuration files that there are none of. */
export {
  Logger,
  runMigrations,
  runTaskList,
  type Task,
  type TaskList,
  type WorkerPool
} from 'graphile-worker'
