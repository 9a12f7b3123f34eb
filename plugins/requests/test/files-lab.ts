import { appendFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestKernel, type TestKernelOptions } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { accessLogFiles, type ProxiedRequest } from '../api.js'
import { asked } from './requests-lab.js'

/** A line of the log of the proxy that the tests have: JSON of what is not as usual. */
export const lineOf = (fields: Partial<ProxiedRequest>): string => `${JSON.stringify(fields)}\n`

/** Lines with so many numbers as paths. */
export const lines = (from: number, to: number): string => {
  let text = ''
  for (let n = from; n < to; n++) text += lineOf({ path: `/${n}`, userAgent: 'u'.repeat(150) })
  return text
}
export const paths = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, n) => `/${from + n}`)

/** A proxy that writes its log there. */
export const loggingProxy = (path: string): NonNullable<TestKernelOptions['inline']>[number] => ({
  manifest: { id: 'logging-proxy', requires: { requests: '^0.1.0' } },
  definition: definePlugin({
    id: 'logging-proxy',
    needs: {},
    start: () => ({}),
    contributes: contribute => {
      contribute(accessLogFiles, 'logging-proxy', {
        path,
        parse: line => {
          if (line === 'throw') throw new Error('it was not to throw')
          const fields = JSON.parse(line) as Partial<ProxiedRequest> | null
          return fields === null ? null : asked(fields)
        }
      })
    }
  })
})

export interface FilesLab {
  readonly k: TestKernel
  readonly folder: string
  /** The log that is written to now. */
  readonly path: string
  append(text: string): Promise<void>
  stop(): Promise<void>
  /** The same platform again. */
  start(): Promise<void>
}

/** A platform that follows a log, which is not there at first. */
export async function openFilesLab(t: Test, options: TestKernelOptions = {}): Promise<FilesLab> {
  const root = await mkdtemp(join(tmpdir(), 'busbar-access-logs-'))
  const folder = join(root, 'proxy')
  const path = join(folder, 'access.log')
  const inline = [loggingProxy(path)]
  let k = await createTestKernel({ ...options, inline })
  t.teardown(async () => {
    await k.close()
    await rm(root, { recursive: true })
  })
  return {
    get k() {
      return k
    },
    folder,
    path,
    async append(text) {
      await mkdir(folder, { recursive: true })
      await appendFile(path, text)
    },
    stop: async () => await k.stop(),
    async start() {
      k = await createTestKernel({ ...options, inline, state: k.state })
    }
  }
}
