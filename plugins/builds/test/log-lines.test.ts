import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageInfo } from 'busbar/api/images'
import { test } from 'tap'
import type { Builder, BuildLogLine } from '../api.js'
import { SourceToImage } from '../image-preparation.js'
import { clock, folder } from './kit.js'

test('lines of a build are handed on as they are; what must not show of them is known before the first', async t => {
  const known: string[] = []
  let searched = 0
  const secrets = {
    redact: (values: readonly string[]): void => {
      known.push(...values)
    },
    clean(text: string): string {
      searched++
      return text
    }
  }
  const builder: Builder = {
    async build(_, { log }) {
      for (let n = 0; n < 10_000; n++) log({ level: 'info', stream: 'stdout', msg: '' })
      return { id: 'sha256:1' } as ImageInfo
    }
  }
  const directory = await folder(t)
  await mkdir(join(directory, 'source'))
  // Only what a build of a repository uses is there.
  const preparation = new SourceToImage({
    builders: { get: () => builder, keys: () => ['own'] },
    git: {
      clone: async (_: unknown, { log }: { log(line: BuildLogLine): void }) => {
        log({ level: 'info', msg: 'Cloning' })
        return { sha: 'a', message: 'm', author: 'b' }
      }
    },
    workspaces: {
      with: async (_: string, use: (folder: string) => Promise<unknown>) => await use(directory)
    },
    clock,
    accounts: { hiding: async (_: string, __: unknown, run: () => Promise<unknown>) => await run() },
    deployKeys: { find: async () => undefined, knownHosts: () => undefined },
    clearings: { find: async () => undefined },
    latest: { save: async () => {} },
    names: { tokenOf: async () => 'token' },
    buildMinutes: 30,
    pullMinutes: 10
  } as unknown as ConstructorParameters<typeof SourceToImage>[0])
  let lines = 0
  await preparation.prepare(
    {
      applicationId: '6f1c2a52-9f5e-4b7e-8a64-1f0f3b1c9d11',
      deploymentId: '6f1c2a52-9f5e-4b7e-8a64-1f0f3b1c9d12',
      projectId: '6f1c2a52-9f5e-4b7e-8a64-1f0f3b1c9d13',
      slug: 'web',
      source: {
        type: 'git',
        repo: 'https://example.com/a.git',
        branch: null,
        token: 'the-token',
        rootDirectory: '',
        dockerfilePath: ''
      } as never,
      buildType: 'own',
      builderImage: null,
      customBuildpacks: [],
      variables: [{ key: 'PASSWORD', value: 'correct horse', isSecret: true }] as never
    },
    {
      secrets,
      signal: new AbortController().signal,
      onCommit: async () => {},
      log() {
        if (lines++ === 0)
          t.ok(known.includes('the-token') && known.includes('correct horse'), 'both are known')
      }
    } as Parameters<SourceToImage['prepare']>[1]
  )
  t.equal(lines, 10_001)
  t.equal(searched, 0, 'whoever writes them searches those that are kept')
})
