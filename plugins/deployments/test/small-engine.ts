import { statfs } from 'node:fs/promises'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { type SecondEngineOptions, startSecondEngine } from '../../../lab/second-engine.js'
import { type LabApplication, openLab } from './deploy-lab.js'

export const mebi = 2 ** 20

/** Serves for a while, and then does something with the disk. */
export const serving = (does: string) => ({
  Dockerfile: `FROM busybox:lab
RUN mkdir /kept
VOLUME /kept
CMD ["sh", "-c", "(sleep 4; ${does}) & exec httpd -f -p 8080"]
`
})
/** A platform on an engine of its own, whose disk is small. */
export async function openSmallEngine(
  t: Test,
  options: SecondEngineOptions,
  settings: Readonly<Record<string, unknown>> = {}
) {
  const engine = await startSecondEngine({ images: ['busybox:lab'], diskBytes: 560 * mebi, ...options })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  await lab.k.configure('builds', { disk_floor_mib: 128, memory_mib: 512, cpus: 0.5 })
  await lab.k.configure('deployments', settings)
  const admin = await lab.k.as.session()
  return {
    lab,
    docker: engine.docker,
    disk: async () => await statfs(engine.dataRoot),
    /** In log and health of a deployment. */
    untilSaid: async ({ path }: LabApplication, id: unknown, what: RegExp): Promise<void> => {
      const logs = async () => (await admin.get(`${path}/deployments/${id as string}`)).body.build_logs
      await until(async () => what.test(await logs()), `its log to say ${what.source}`)
      t.match((await admin.get(`${path}/health`)).body, { status: 'failing', message: what })
    },
    makeWritable: async ({ path }: LabApplication) => {
      t.equal((await admin.put(`${path}/runtime`, { readonly_rootfs: false })).status, 200)
    }
  }
}
