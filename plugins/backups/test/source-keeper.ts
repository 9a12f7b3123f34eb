import { randomUUID } from 'node:crypto'
import { type Contributions, definePlugin } from 'busbar/sdk'
import { type BackupSource, backupSources, type RestoreWork, type SourceKind } from '../api.js'

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

/** Of a platform whose sources a test asks itself. */
export const sourceOptions = {
  inline: [{ manifest: { id: 'keeper', requires: { backups: '^0.1.0' } }, definition: keeper }]
}

export function sourceOf(kind: SourceKind): BackupSource {
  const found = sources.entries().find(({ key }) => key === kind)?.value
  if (found === undefined) throw new Error(`nobody contributes a source ${kind}`)
  return found
}

/** Of another restore each time. */
export const work = (): RestoreWork => ({
  id: randomUUID(),
  signal: new AbortController().signal,
  say: () => {},
  restored: async () => {}
})

/** As the plugin of a source puts back by itself what a restore has left, where nobody makes backups. */
export async function putBack(source: BackupSource, id: string): Promise<void> {
  await source.settle(id, 'restore', { signal: work().signal })
}

/** What is told of a restore that its source may have put back before; null where nothing is. */
export async function outcomeOf(source: BackupSource, id: string, restore: string): Promise<string | null> {
  let answer: string | null = null
  await source.settle(id, 'restore', {
    ...work(),
    id: restore,
    restored: async () => {
      answer = 'restored'
    },
    undone: () => {
      answer = 'undone'
    }
  })
  return answer
}
