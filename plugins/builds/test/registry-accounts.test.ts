import { test } from 'tap'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { makeImage, push } from './hand-made-image.js'
import { account, deployImage } from './taken-lab.js'

/** What a tag stands for in the registry. */
async function digestOf(host: string, path: string, tag: string): Promise<string> {
  const basic = Buffer.from(`${account.username}:${account.password}`).toString('base64')
  const answer = await fetch(`http://${host}/v2/${path}/manifests/${tag}`, {
    headers: {
      authorization: `Basic ${basic}`,
      accept: 'application/vnd.docker.distribution.manifest.v2+json'
    }
  })
  return answer.headers.get('docker-content-digest') ?? ''
}

const server = 'EXPOSE 8080\nCMD ["httpd", "-f", "-p", "8080"]\n'

test('a private base is pulled with the account of the project, else with that of the installation, and by nobody else', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const registry = await startDockerRegistry(t, { account })
  const lines: string[] = []
  const lab = await openLab({ onLog: line => lines.push(line) })
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const base = `${registry.host}/team/base:1`
  await makeImage(t, base, 'FROM busybox:lab\nRUN echo private > /private.txt\n')
  await push(base, account)
  const ofProject = `/api/projects/${lab.projectId}/registries`
  const credentials = { registry: registry.host, ...account }
  const application = await lab.application('mine', { Dockerfile: `FROM ${base}\n${server}` })
  const logs: string[] = []
  const deployed = async (app: { deployed(): Promise<any> }): Promise<any> => {
    const deployment = await app.deployed()
    logs.push(deployment.build_logs, deployment.error_message ?? '')
    return deployment
  }

  await t.test('without an account the deploy fails, and says how to give the project one', async t => {
    t.match(await deployed(application), {
      status: 'failed',
      error_message:
        /does not hand out the base image .*neither the project nor the installation has an account .*PUT \/api\/projects\/<id>\/registries/
    })
  })

  await t.test('a password that is wrong is told as such, when it is tried and when it is used', async t => {
    const { body: set } = await admin.put(ofProject, { ...credentials, password: 'wrong-0123456789' })
    t.match(await admin.post(`${ofProject}/${set.id}/test`), {
      status: 200,
      body: { status: 'refused', reason: /refused the user name deployer and its password/ }
    })
    const failed = await deployed(application)
    t.match(failed, {
      status: 'failed',
      error_message:
        /refused the user name deployer and its password, the account of the project: .*PUT \/api\/projects\/<id>\/registries/
    })
    t.notMatch(failed.build_logs + failed.error_message, 'wrong-0123456789')
  })

  await t.test('with the account of the project it is built', async t => {
    const { body: set } = await admin.put(ofProject, credentials)
    t.match(await admin.post(`${ofProject}/${set.id}/test`), {
      status: 200,
      body: { status: 'ok', reason: null }
    })
    const built = await deployed(application)
    t.match(built, { status: 'success', error_message: null })
    t.match(built.build_logs, /Pulling .* as deployer, the account of this project for its registry/)
    const again = await deployed(application)
    t.match(again, { status: 'success' }, 'and again, with nothing to download')
    t.notMatch(again.build_logs, /layers ready/)
  })

  await t.test(
    'an image application without an account of its own runs with that of its project',
    async t => {
      const image = `${registry.host}/team/app:1`
      await makeImage(t, image, `FROM busybox:lab\nRUN echo app > /app.txt\n${server}`)
      await push(image, account)
      const { deployment } = await deployImage(lab, 'image', image)
      logs.push(deployment.build_logs)
      t.match(deployment, { status: 'success', build_logs: /as deployer, the account of this project/ })
    }
  )

  const other = await lab.otherProject('other', { Dockerfile: `FROM ${base}\n${server}` })

  await t.test('another project without an account is refused, by the tag and by the digest', async t => {
    t.match(await deployed(other), { status: 'failed', error_message: /does not hand out the base image/ })
    const digest = await digestOf(registry.host, 'team/base', '1')
    t.match(digest, /^sha256:/)
    await other.push({ Dockerfile: `FROM ${registry.host}/team/base@${digest}\n${server}` })
    t.match(await deployed(other), { status: 'failed', error_message: /does not hand out the base image/ })
    await other.push({
      Dockerfile: `FROM busybox:lab\nCOPY --from=${base} /private.txt /\n${server}`
    })
    t.match(await deployed(other), { status: 'failed', error_message: /does not hand out the base image/ })
  })

  await t.test('the account of the installation is for every project, until it is deleted', async t => {
    const { body: set } = await admin.put('/api/registries', credentials)
    t.match(await admin.post(`/api/registries/${set.id}/test`), { body: { status: 'ok' } })
    t.match(await deployed(other), {
      status: 'success',
      build_logs: /as deployer, the account of the installation for its registry/
    })
    t.match(await admin.delete(`/api/registries/${set.id}`), { status: 200 })
    t.match(
      await deployed(other),
      { status: 'failed', error_message: /does not hand out the base image/ },
      'although the engine has the image, and the application was handed it'
    )
  })

  await t.test('what came with an account that was deleted, or has lost its right, is refused', async t => {
    await admin.put(ofProject, { ...credentials, password: 'changed-0123456789' })
    t.match(await deployed(application), {
      status: 'failed',
      error_message: /refused the user name deployer and its password, the account of the project/
    })
    const [{ id }] = (await admin.get(ofProject)).body
    await admin.delete(`${ofProject}/${id}`)
    t.match(await deployed(application), {
      status: 'failed',
      error_message: /does not hand out the base image/
    })
  })

  await t.test('while the registry is away, what an account was handed is used by who has one', async t => {
    await admin.put(ofProject, credentials)
    await registry.close()
    const built = await deployed(application)
    t.match(built, { status: 'success', build_logs: /What it was handed out as last is used/ })
    t.match(await deployed(other), { status: 'failed' })
    const [{ id }] = (await admin.get(ofProject)).body
    t.match(await admin.post(`${ofProject}/${id}/test`), {
      status: 200,
      body: { status: 'unreachable', reason: /ECONNREFUSED/ }
    })
  })

  t.notMatch(logs.join('\n'), account.password)
  t.notMatch(lines.join('\n'), account.password)
})
