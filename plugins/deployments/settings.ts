import { fromEnvironment, object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  task_timeout_minutes: fromEnvironment(
    'TASK_TIMEOUT_MINUTES',
    Type.Integer({
      minimum: 1,
      maximum: 9999,
      default: 45,
      description: 'How long one deployment may take, without its wait for other builds'
    })
  ),
  health_check_interval_seconds: fromEnvironment(
    'HEALTH_CHECK_INTERVAL_SECONDS',
    Type.Integer({
      minimum: 1,
      maximum: 9999,
      default: 30,
      description: 'The time between two `http` checks of a running application'
    })
  ),
  container_disk_mib: Type.Integer({
    minimum: 0,
    default: 10_240,
    description:
      'What a container of an application may write to its own file system and to volumes that its image declares; 0: no limit, MiB'
  }),
  container_files: Type.Integer({
    minimum: 0,
    default: 1_000_000,
    description: 'How many files and directories a container of an application may have there; 0: no limit'
  })
})
export type Settings = Static<typeof settings>
