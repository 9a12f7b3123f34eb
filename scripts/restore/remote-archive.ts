import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Settings } from '../../core/config/environment.js'
import { readArchiveName } from '../../plugins/platform-backups/archive/archive-name.js'
import { RestoreError } from '../../plugins/platform-backups/restore/restore-target.js'
import { S3Bucket } from '../../sdk/s3/index.js'
import { type FoundArchive, isOwn, latestOf, nameOf } from './latest-archive.js'
import type { OwnArchives } from './own-archives.js'

/** The bucket of the environment: what was saved in the platform is in the archive. */
function openRemote({ variable }: Settings): { readonly remote: S3Bucket; readonly prefix: string } {
  const need = (name: string): string => {
    const value = variable(name)
    if (value === undefined) throw new RestoreError(`set ${name}: it says where the archive is`)
    return value
  }
  const prefix = variable('BACKUP_S3_PREFIX') ?? 'busbar/'
  return {
    prefix,
    remote: new S3Bucket({
      endpoint: variable('BACKUP_S3_ENDPOINT') ?? '',
      region: variable('BACKUP_S3_REGION') ?? 'us-east-1',
      bucket: need('BACKUP_S3_BUCKET'),
      useSsl: variable('BACKUP_S3_USE_SSL') !== 'false',
      accessKey: need('BACKUP_S3_ACCESS_KEY'),
      secretKey: need('BACKUP_S3_SECRET_KEY')
    })
  }
}

async function find(remote: S3Bucket, prefix: string, signal: AbortSignal): Promise<FoundArchive[]> {
  const found: FoundArchive[] = []
  for await (const { key, bytes } of remote.list(prefix, { signal })) {
    const name = key.slice(prefix.length)
    const read = readArchiveName(name)
    if (read !== undefined) found.push({ key, name, bytes, at: read.at, installation: read.installation })
  }
  return found.sort((a, b) => b.at.getTime() - a.at.getTime())
}

/** One line for each archive, the newest first, with whose it is. */
export async function listArchives(
  settings: Settings,
  own: OwnArchives | undefined,
  signal: AbortSignal
): Promise<string[]> {
  const { remote, prefix } = openRemote(settings)
  return (await find(remote, prefix, signal)).map(archive => {
    const { name, bytes, at, installation } = archive
    const whose = own !== undefined && isOwn(archive, own) ? 'this installation' : nameOf(installation)
    return `${name}\t${at.toISOString()}\t${bytes} bytes\t${whose}`
  })
}

/** Fetches an archive by its name, or the newest; where it is then. `own`: of the platform that is there, where it is known. */
export async function downloadArchive(
  settings: Settings,
  name: string,
  staging: string,
  {
    own,
    signal,
    say
  }: {
    readonly own: OwnArchives | undefined
    readonly signal: AbortSignal
    readonly say: (message: string) => void
  }
): Promise<string> {
  const { remote, prefix } = openRemote(settings)
  const all = await find(remote, prefix, signal)
  const found =
    name === 'latest' ? latestOf(all, own, prefix) : all.find(one => one.name === name || one.key === name)
  if (found === undefined)
    throw new RestoreError(
      name === 'latest'
        ? `there is no archive below ${prefix} in the bucket`
        : `there is no archive ${name} in the bucket; "busbar restore --list" names those that there are`
    )
  const file = join(dirname(staging), found.name)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  say(`${found.key} is fetched, ${found.bytes} bytes`)
  await pipeline(await remote.get(found.key, { signal }), createWriteStream(file, { mode: 0o600 }), {
    signal
  })
  return file
}
