import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { directAddresses } from '../api.js'
import { createApplication, deleteApplication, openApplication } from './applications.js'

// An address of this file's own, so that no other test takes a port of the range. Without an engine.
const environment = (ports: string) => ({
  BUSBAR_DIRECT_HOST: '127.0.0.6',
  BUSBAR_DIRECT_BIND: '127.0.0.6',
  BUSBAR_DIRECT_PORTS: ports,
  DOCKER_HOST: 'unix:///nonexistent.sock'
})
const portOf = (url: string): number => Number(new URL(url).port)

test('the port of a deleted application is given to nobody while one is left that nobody ever had', async t => {
  const k = await createTestKernel({ environment: environment('22010-22013') })
  t.teardown(() => k.close())
  const ports: number[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    const application = await openApplication(k)
    ports.push(portOf(application.url))
    await deleteApplication(k, application)
  }
  t.same(ports, [22010, 22011, 22012, 22013], 'the lowest first')
})

test('when every port has been somebody’s, the one that has been free longest is next', async t => {
  const k = await createTestKernel({ environment: environment('22020-22022') })
  t.teardown(() => k.close())
  const first = await openApplication(k)
  const second = await openApplication(k)
  const third = await openApplication(k)
  for (const application of [second, third, first]) await deleteApplication(k, application)
  const again = await openApplication(k)
  t.equal(again.url, second.url)
  await deleteApplication(k, again)
  t.equal((await openApplication(k)).url, third.url)
  t.equal((await openApplication(k)).url, first.url)
  t.equal((await openApplication(k)).url, second.url, 'what was given back last comes last')
  await t.rejects(openApplication(k), { code: 'E_DIRECT_PORT_UNAVAILABLE' })
})

test('the ports of applications that were deleted while direct addresses were off are remembered too', async t => {
  const k = await createTestKernel({ environment: environment('22030-22033') })
  t.teardown(() => k.close())
  const gone = await openApplication(k)
  await k.disable('direct')
  // As after a removal by a platform that did not know the plugin.
  await k.query('delete from applications.application where id = $1', [gone.id])
  await k.enable('direct')
  t.equal(portOf((await openApplication(k)).url), portOf(gone.url) + 1)
})

test('an address that a deploy opened while its application was being removed is given back too', async t => {
  const k = await createTestKernel({ environment: environment('22080-22082') })
  t.teardown(() => k.close())
  // With it, an application would wait until the engine says that no container is left.
  await k.disable('runtime-docker', { force: true })
  const { id, path } = await openApplication(k)
  // When the plugins have taken away what they had of it, and the last step is the row.
  await k.query(`
    create function direct.open_late() returns trigger language plpgsql as $$ begin
      insert into direct.address (application_id, port, is_running, updated_at) values (old.id, 22082, false, now());
      return old;
    end $$;
    create trigger late before delete on applications.application for each row execute function direct.open_late()`)
  await (await k.as.session()).delete(path)
  await until(
    async () => (await k.query('select from applications.application where id = $1', [id])).length === 0,
    'the application is gone'
  )
  await until(async () => (await k.query('select from direct.address')).length === 0, 'its address is gone')
  t.match(await k.query('select port from direct.released_port order by port'), [
    { port: 22080 },
    { port: 22082 }
  ])
})

test('two processes give every application a port of its own, and none that was another’s', async t => {
  const first = await createTestKernel({ environment: environment('22040-22079') })
  const second = await createTestKernel({ environment: environment('22040-22079'), state: first.state })
  t.teardown(async () => {
    await second.stop()
    await first.close()
  })
  const had: string[] = []
  for (let round = 0; round < 4; round += 1) {
    const [one, other, idle] = await Promise.all([
      openApplication(first),
      openApplication(first, second),
      createApplication(first)
    ])
    // Both at once for one application: there is one address.
    const both = await Promise.all(
      [first, second].map(k =>
        k
          .service(directAddresses)
          .open(idle.id)
          .catch(() => null)
      )
    )
    const urls = new Set(both.flatMap(address => address?.url ?? []))
    t.equal(urls.size, 1)
    had.push(one.url, other.url, ...urls)
    await Promise.all([deleteApplication(first, one), deleteApplication(first, other)])
  }
  t.equal(new Set(had).size, had.length)
})
