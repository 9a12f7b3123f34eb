import { mountPathFault } from 'busbar/api/containers'
import { imageReferenceShape } from 'busbar/api/images'
import type { DatabaseEngineKind } from '../api.js'
import { problems } from '../problems.js'
import type { CreateBody } from '../schemas.js'

interface Creation {
  readonly version: string
  readonly image: string
  readonly port: number
  readonly dataDir: string | null
  readonly backupMode: string
  readonly backupCommand: string | null
  readonly restoreCommand: string | null
  /** The variables of one that is an image alone. */
  readonly env: Readonly<Record<string, string>>
}

const longestEnv = 256 * 1024
const invalid = (field: string, reason: string) => problems.invalid({ field, reason })

/** What is made of a body; of another kind than `other` the engine knows the rest. */
export function decideCreation(body: CreateBody, kind: DatabaseEngineKind): Creation {
  return kind.defaults === null ? freeCreation(body) : engineCreation(body, kind, kind.defaults)
}

function engineCreation(
  body: CreateBody,
  kind: DatabaseEngineKind,
  { version: usual, port }: NonNullable<DatabaseEngineKind['defaults']>
): Creation {
  const notFor = ['image', 'data_dir', 'backup_command', 'restore_command'] as const
  for (const field of notFor) if ((body[field] ?? '') !== '') throw invalid(field, 'is for the type other')
  if ((body.container_port ?? 0) !== 0) throw invalid('container_port', 'is for the type other')
  if (body.env !== undefined && Object.keys(body.env).length > 0)
    throw invalid('env', 'is for the type other')
  if ((body.backup_mode ?? '') !== '' && body.backup_mode !== 'none')
    throw invalid('backup_mode', 'is for the type other: this one is dumped')
  const version = body.version || usual
  return {
    version,
    image: kind.image(version),
    port,
    dataDir: null,
    backupMode: 'none',
    backupCommand: null,
    restoreCommand: null,
    env: {}
  }
}

function freeCreation(body: CreateBody): Creation {
  const image = body.image?.trim() ?? ''
  if (image === '') throw invalid('image', 'must be given for the type other')
  if (!imageReferenceShape.test(image))
    throw invalid(
      'image',
      'must be an image reference in lower case, such as registry.example.com/team/store:1'
    )
  const port = body.container_port ?? 0
  if (port === 0) throw invalid('container_port', 'must be given for the type other')
  if (body.credentials != null && Object.values(body.credentials).some(value => (value ?? '') !== ''))
    throw invalid('credentials', 'are not for the type other: give its variables in env')
  const mode = (body.backup_mode ?? '') === '' ? 'volume_snapshot' : (body.backup_mode ?? '')
  if (mode === 'none') throw invalid('backup_mode', 'must be volume_snapshot or command')
  const [backup, restore] = [body.backup_command?.trim() ?? '', body.restore_command?.trim() ?? '']
  if (mode === 'command' && backup === '')
    throw invalid('backup_command', 'must be given with backup_mode command')
  if (mode === 'command' && restore === '')
    throw invalid('restore_command', 'must be given with backup_mode command')
  if (mode !== 'command' && backup !== '') throw invalid('backup_command', 'goes with backup_mode command')
  if (mode !== 'command' && restore !== '') throw invalid('restore_command', 'goes with backup_mode command')
  return {
    version: body.version ?? '',
    image,
    port,
    dataDir: checkedDirectory(body.data_dir),
    backupMode: mode,
    backupCommand: mode === 'command' ? backup : null,
    restoreCommand: mode === 'command' ? restore : null,
    env: checkedEnv(body.env ?? {})
  }
}

/** By the rules of all that is mounted in containers. */
function checkedDirectory(given: string | undefined): string {
  const path = given === undefined || given === '' ? '/data' : given
  const fault = mountPathFault({ kind: 'volume', path })
  if (fault !== undefined) throw invalid('data_dir', fault)
  return path
}

function checkedEnv(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  let size = 0
  for (const [key, value] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
      throw invalid('env', `must have names of letters, digits and _: ${JSON.stringify(key.slice(0, 100))}`)
    if (value.includes('\u0000')) throw invalid('env', `must have no NUL in ${key}`)
    size += key.length + value.length
  }
  if (size > longestEnv) throw invalid('env', 'must have 256 KiB at most')
  return env
}
