import { randomBytes } from 'node:crypto'
import { containerRuntime } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import type { Test } from 'tap'
import { containerOf, createDatabase, type Lab, type Made, removeAll } from './lab.js'

const endsSlowly =
  'trap "echo ending; sleep 6; exit 0" TERM; httpd -p 80; while :; do sleep 1 & wait $!; done'

/** A database of any kind whose server takes some seconds to end. */
export async function slowDatabase(t: Test, lab: Lab): Promise<Made> {
  const docker = new Docker()
  const repo = `lab-${randomBytes(4).toString('hex')}`
  const container = await docker.createContainer({ Image: 'busybox:lab', Cmd: ['sh', '-c', endsSlowly] })
  try {
    await container.commit({ repo, tag: '1' })
  } finally {
    await container.remove()
  }
  t.teardown(async () => {
    // An image that a container has loses its name only.
    await removeAll(lab.k)
    await docker.getImage(`${repo}:1`).remove({ force: true })
  })
  return await createDatabase(lab, { name: 'slow', type: 'other', image: `${repo}:1`, container_port: 80 })
}

/** Resolves when its server has been told to end, which it then takes some seconds for. */
export async function untilEnding({ k }: Lab, { id }: Made): Promise<void> {
  const container = await containerOf(k, id)
  const isEnding = async (): Promise<boolean> =>
    (await k.service(containerRuntime).tail(container, 5)).includes('ending')
  await until(isEnding, 'its server to be told to end')
}
