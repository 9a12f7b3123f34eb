import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type DeployLab, engine, type LabApplication, openLab, sample } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

/** Builds until it is stopped; the step's command names the application. */
const endless = (application: { readonly slug: string }) =>
  sample('never', 'ok', `FROM node:20\nRUN echo ${application.slug} && sleep 600\n`)

const isBuilding = async ({ slug }: LabApplication): Promise<boolean> =>
  (await engine.listContainers()).some(({ Command }) => Command.includes(`echo ${slug}`))

/** A deploy that is in the middle of its build. */
async function startBuilding(application: LabApplication): Promise<string> {
  await application.push(endless(application))
  const { id } = await application.deploy()
  await until(async () => await isBuilding(application), 'it builds', 60_000)
  return id
}

test('what is done to an application while it is being deployed', async t => {
  if (!(await requireEngine(t))) return
  const lab: DeployLab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  t.match(await web.deployed(), { status: 'success' })
  const { direct_url: address } = await web.read()
  const served = async (): Promise<string> => await (await fetch(address)).text()

  await t.test('it cannot be stopped, started or restarted, and the answer says why', async t => {
    const id = await startBuilding(web)
    for (const verb of ['stop', 'start', 'restart'])
      t.match(await admin.post(`${web.path}/${verb}`), {
        status: 409,
        body: { error: /a deployment is in progress/ }
      })
    t.equal((await admin.post(`${web.path}/deployments/${id}/cancel`)).status, 202)
    t.match(await web.ended(id), { status: 'failed', error_message: 'cancelled' })
    t.equal(await served(), 'one')
  })

  await t.test('the words that one project hides are left in the logs and events of another', async t => {
    const other = await lab.otherProject('other', sample('theirs'))
    const hide = async (values: readonly string[]) =>
      await admin.put(`${web.path}/env`, {
        vars: values.map((value, index) => ({ key: `HIDDEN_${index}`, value, is_secret: true }))
      })
    t.equal((await hide(['Cloning', 'success', 'info', 'Healthy'])).status, 200)
    await web.push(sample('never', 'silent'))
    const { id } = await web.deploy()
    const isProven = async (): Promise<boolean> =>
      (await admin.get(`${web.path}/deployments/${id}`)).body.status === 'deploying'
    await until(isProven, 'it waits for its health', 60_000)
    const socket = await lab.k.socket(admin)
    const { id: otherId } = await other.deploy()
    const channel = `build-logs:${otherId}`
    socket.subscribe(channel)
    const ended = await other.ended(otherId)
    t.match(ended, { status: 'success', build_logs: /Cloning .*[\s\S]*Healthy: / })
    t.notMatch(ended.build_logs, /REDACTED/)
    const frames = socket.frames.filter(frame => frame.channel === channel)
    t.ok(frames.length > 0)
    t.notMatch(JSON.stringify(frames), /REDACTED/)
    await socket.close()
    const { body } = await admin.get(`${web.path}/deployments/${id}`)
    t.match(body.build_logs, /\[REDACTED\] http/, 'its own log hides them')
    t.notMatch(body.build_logs, /Cloning/)
    t.equal((await admin.post(`${web.path}/deployments/${id}/cancel`)).status, 202)
    await web.ended(id)
    await hide([])
    t.ok((await admin.delete(other.path.replace(/\/applications\/.*/, ''))).status < 300)
  })

  for (const plugin of ['deployments', 'builds', 'runtime-docker']) {
    await t.test(
      `turning ${plugin} off ends the deploy with a reason, and the old version serves on`,
      async t => {
        const id = await startBuilding(web)
        const before = lab.k.runningPlugins()
        await lab.k.disable(plugin, { cascade: true })
        const off = before.filter(name => !lab.k.runningPlugins().includes(name))
        t.ok(off.includes(plugin), `off: ${off.join(', ')}`)
        if (!off.includes('direct')) t.equal(await served(), 'one', 'requests are forwarded meanwhile')
        await until(async () => !(await isBuilding(web)), 'the build is gone')
        for (const name of off) await lab.k.enable(name)
        t.match(await web.ended(id), {
          status: 'failed',
          finished_at: String,
          error_message: /stopped|turned off|is off/
        })
        await untilNothingIsLeft(lab, [web])
        t.equal(await served(), 'one')
        t.match(await web.read(), { status: 'running', direct_url: address })
      }
    )
  }

  await t.test('an application that is deleted while it builds is gone with all it had', async t => {
    const doomed = await lab.application('doomed', sample('one'))
    t.match(await doomed.deployed(), { status: 'success' })
    const { direct_url: its } = await doomed.read()
    await startBuilding(doomed)
    t.equal((await admin.delete(doomed.path)).status, 200)
    t.equal((await admin.get(doomed.path)).status, 404)
    await until(
      async () => !(await isBuilding(doomed)) && (await doomed.containers()).length === 0,
      'its containers are gone',
      60_000
    )
    await until(
      async () =>
        await fetch(its).then(
          () => false,
          () => true
        ),
      'its address is closed'
    )
    const images = async () =>
      await engine.listImages({ filters: { label: [`application-id=${doomed.id}`] } })
    await until(async () => (await images()).length === 0, 'its images are gone', 60_000)
    await untilNothingIsLeft(lab, [web])
    t.equal(await served(), 'one')
  })

  await t.test(
    'a project that is deleted while an application of it builds is gone with its network',
    async t => {
      const doomed = await lab.otherProject('doomed-too', sample('one'))
      t.match(await doomed.deployed(), { status: 'success' })
      const projectPath = doomed.path.replace(/\/applications\/.*/, '')
      await startBuilding(doomed)
      t.ok((await admin.delete(projectPath)).status < 300)
      t.equal((await admin.get(projectPath)).status, 404)
      await until(async () => (await doomed.containers()).length === 0, 'its containers are gone', 60_000)
      const projectId = projectPath.split('/').at(-1) ?? ''
      await until(
        async () =>
          (await engine.listNetworks({ filters: { label: [`project-id=${projectId}`] } })).length === 0,
        'its network is gone',
        60_000
      )
      await untilNothingIsLeft(lab, [web])
      t.equal(await served(), 'one')
    }
  )
})
