import { test } from 'tap'
import type { EngineClient } from '../engine-client.js'
import { FileTools } from '../files/file-tools.js'
import type { HostTools } from '../host/host-tools.js'

const local: HostTools = { run: async () => ({ code: 0, output: '', errors: '' }) }

test('a container that ends while it is looked at does not hide that the engine is on this machine', async t => {
  // What stands in the control groups of every process, as the id of a container does in those of its own.
  const here = ':/'
  const pids = new Map([[here, process.pid]])
  const running = ['gone', 'ended', here]
  pids.set('ended', 0)
  const docker = {
    listContainers: async () => [{ Id: running.shift() ?? here }],
    getContainer: (id: string) => ({
      inspect: async () => (pids.has(id) ? { State: { Pid: pids.get(id) } } : undefined)
    })
  }
  const engine = {
    call: async (_: string, run: (engine: typeof docker) => Promise<unknown>) => await run(docker)
  } as unknown as EngineClient
  const tools = new FileTools({ engine, instanceId: 'test', local, isInContainer: async () => false })
  t.equal(await tools.open('/'), local)
  await tools.close()
})
