import type { ApplicationRow } from './schemas.js'

/** Applied by a deploy. */
const sourceFields = [
  'type',
  'build_type',
  'build_type_override',
  'builder_image',
  'custom_buildpacks',
  'source_repo',
  'source_image',
  'branch',
  'dockerfile_path',
  'root_directory',
  'build_target',
  'build_platform'
] as const

/** Applied when the container is made anew: a reload is enough. */
const configFields = [
  'container_port',
  'start_command',
  'cpu_limit',
  'memory_limit',
  'container_caps',
  'readonly_rootfs',
  'health_check_type',
  'health_check_path',
  'health_check_command',
  'health_check_expect_status',
  'health_check_interval_seconds',
  'health_check_retries',
  'health_check_start_period_seconds',
  'health_check_timeout_seconds'
] as const

type ChangeMarkers = Partial<Pick<ApplicationRow, 'config_changed_at' | 'source_changed_at'>>

/** Which markers a change sets: only what really differs counts. */
export function changeMarkers(
  current: ApplicationRow,
  changes: Partial<ApplicationRow>,
  now: Date
): ChangeMarkers {
  const differs = (field: keyof ApplicationRow) => field in changes && changes[field] !== current[field]
  return {
    ...(sourceFields.some(differs) && { source_changed_at: now }),
    ...(configFields.some(differs) && { config_changed_at: now })
  }
}
