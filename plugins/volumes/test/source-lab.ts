import { Readable } from 'node:stream'
import { type BackupSource, backupSources } from 'busbar/api/backups'
import { type Contributions, definePlugin } from 'busbar/sdk'

let sources: Contributions<BackupSource>
/** What makes backups, as far as a source sees of it. */
const keeper = definePlugin({
  id: 'keeper',
  needs: { sources: backupSources },
  start: ({ use }) => {
    sources = use.sources
    return {}
  }
})

/** Of a platform whose source of volumes a test asks itself. */
export const sourceOptions = {
  inline: [{ manifest: { id: 'keeper', requires: { backups: '^0.1.0' } }, definition: keeper }]
}

export const sourceOf = (): BackupSource => {
  const found = sources.entries().find(({ key }) => key === 'volume')?.value
  if (found === undefined) throw new Error('nobody contributes volumes')
  return found
}

export const work = () => ({ signal: new AbortController().signal, say: () => {}, restored: async () => {} })

/** As it comes from a destination. */
export const stored = (tar: Buffer) => ({
  format: 'tar',
  databases: [],
  version: '',
  bytes: tar.length,
  content: Readable.from(
    Array.from({ length: Math.ceil(tar.length / 65_536) }, (_, at) =>
      tar.subarray(at * 65_536, (at + 1) * 65_536)
    )
  )
})
