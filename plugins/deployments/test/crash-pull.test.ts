import { type AddressInfo, createServer, type Socket } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { killWhen, startVictim } from './crash-lab.js'
import { openLab } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

test('kill -9 of the platform during a pull: the deploy has failed, and what runs goes on', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const { web, address, serving } = await startVictim(lab)
  const sockets = new Set<Socket>()
  const registry = createServer(socket => {
    sockets.add(socket.on('error', () => {}))
  })
  await new Promise<void>(resolve => registry.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    registry.close()
    for (const socket of sockets) socket.destroy()
  })
  const image = `127.0.0.1:${(registry.address() as AddressInfo).port}/silent:1`
  const pulled = await lab.application(
    'pulled',
    {},
    { type: 'image', build_type: 'image', source_image: image, source_repo: undefined, branch: undefined }
  )
  await lab.k.stop()
  const deploymentId = await killWhen(
    lab,
    pulled,
    async () => await until(() => sockets.size > 0, 'the engine asks the registry')
  )
  await lab.restart()
  t.match(await pulled.ended(deploymentId), {
    status: 'failed',
    error_message: /the platform stopped while this deployment was at the step prepare-image/
  })
  t.match(await pulled.read(), { status: 'error', direct_url: null })
  await untilNothingIsLeft(lab, [web, pulled])
  t.equal(await (await fetch(address)).text(), serving)
})
