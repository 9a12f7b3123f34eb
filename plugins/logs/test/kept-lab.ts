import { randomUUID } from 'node:crypto'
import {
  createTestKernel,
  type TestClient,
  type TestKernel,
  type TestKernelOptions
} from 'busbar/sdk/testing'
import root from 'tap'
import { CollectStore } from '../collect/collect-store.js'
import { levelOfLine } from '../collect/level.js'
import { kindOf } from '../kept/chunk.js'
import { LineTimes } from '../kept/line-time.js'
import { chunksOf } from './chunks-of.js'

interface WrittenLine {
  /** `2026-01-02T03:04:05.678901234Z`. */
  readonly time: string
  readonly text: string
  readonly stream?: 'stdout' | 'stderr'
}

/** A platform with lines of an application that no engine has told. */
export class KeptLab {
  private constructor(
    readonly k: TestKernel,
    readonly client: TestClient,
    readonly projectId: string,
    readonly applicationId: string
  ) {}

  static async open(options: TestKernelOptions = {}): Promise<KeptLab> {
    return await KeptLab.on(await createTestKernel(options))
  }

  /** With an application of its own. */
  static async on(k: TestKernel): Promise<KeptLab> {
    const client = await k.as.session('ann')
    const slug = `l${randomUUID().slice(0, 8)}`
    const { body: project } = await client.post('/api/projects', { name: slug, slug })
    const { body } = await client.post(`/api/projects/${project.id}/applications`, {
      name: 'web',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
    return new KeptLab(k, client, project.id, body.id)
  }

  get path(): string {
    return `/api/projects/${this.projectId}/applications/${this.applicationId}/logs`
  }

  /** The id of a container of the application. */
  containerOf(digit: string): string {
    return digit.repeat(32) + this.applicationId.replaceAll('-', '')
  }

  /** Keeps lines of a container as the collector does, each list in a chunk or more of its own. */
  async write(containerId: string, deploymentId: string, ...lists: ReadonlyArray<readonly WrittenLine[]>) {
    const store = new CollectStore(this.k.database('logs'))
    const times = new LineTimes()
    const chunks = lists.flatMap(lines =>
      chunksOf(
        lines.map(({ time, text, stream = 'stdout' }) => ({
          ...times.read(time),
          kind: kindOf(levelOfLine(text), stream),
          message: text
        })),
        text => text
      )
    )
    const seen = { containerId, deploymentId, sourceId: this.applicationId, sourceType: 'application' }
    for (;;) {
      const [container] = await store.register([seen], new Date())
      if (container === undefined) throw new Error('the container is not known')
      if (chunks.length === 0) return
      const kept = { key: container.key, place: randomUUID(), chunks }
      const written = await store.write(await store.begin(), [kept])
      // The platform's own collector may have begun meanwhile, or have forgotten a container that its engine does not have.
      if (written !== undefined && written.sources.length > 0) return
    }
  }

  async page(query = '') {
    this.k.resetRateLimits()
    const { status, body, headers } = await this.client.get(`${this.path}/history${query}`)
    if (status !== 200) throw new Error(JSON.stringify(body))
    return {
      rows: body as ReadonlyArray<Record<string, string>>,
      messages: (body as ReadonlyArray<{ message: string }>).map(({ message }) => message),
      total: headers['x-total-count'] as string | undefined,
      next: headers['x-next-cursor'] as string | undefined
    }
  }

  async close(): Promise<void> {
    await this.k.close()
  }
}

/** One platform for the tests of a file, which is closed after the last of them. */
export function sharedPlatform(): () => Promise<KeptLab> {
  let kernel: Promise<TestKernel> | undefined
  root.teardown(async () => await (await kernel)?.close())
  return async () => {
    kernel ??= createTestKernel()
    return await KeptLab.on(await kernel)
  }
}

/** A time of so many milliseconds and nanoseconds more. */
export const at = (ms: number, nanos = 0): string =>
  `${new Date(Date.parse('2026-01-02T03:04:05.000Z') + ms).toISOString().slice(0, 23)}${String(nanos).padStart(6, '0')}Z`
