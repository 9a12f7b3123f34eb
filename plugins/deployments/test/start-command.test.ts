import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, type LabApplication, openLab } from './deploy-lab.js'

/** Serves its arguments, one a line. */
const serve =
  '#!/bin/sh\nmkdir -p /tmp/w\nfor word in "$@"; do echo "$word"; done > /tmp/w/index.html\nexec httpd -f -p 8080 -h /tmp/w\n'
const files = (dockerfile: string) => ({
  Dockerfile: `FROM busybox:lab\nCOPY . /app\nRUN chmod 755 /app/serve /app/entry\n${dockerfile}\n`,
  serve,
  entry: '#!/bin/sh\necho prepared > /tmp/prepared\nexec "$@"\n'
})
const hard = `/app/serve "two words" 'it'"'"'s $HOME' \\*`
const words = "two words\nit's $HOME\n*\n"

test('a start command of the application', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const served = async (application: LabApplication) =>
    await (await fetch((await application.read()).direct_url)).text()
  const reloaded = async (application: LabApplication) =>
    await application.ended((await admin.post(`${application.path}/reload`)).body.id)

  await t.test('it takes the place of CMD at the next reload, and goes when it is cleared', async t => {
    const web = await lab.application('web', files('CMD ["/app/serve", "own"]'))
    t.equal((await web.read()).start_command, null)
    const first = await web.deployed()
    t.equal(await served(web), 'own\n')
    t.match(await admin.put(web.path, { start_command: hard }), {
      status: 200,
      body: { start_command: hard, pending_change: 'config' }
    })
    t.equal(await served(web), 'own\n', 'what runs is left alone')
    t.match(await reloaded(web), { status: 'success', error_message: null })
    t.match(await web.read(), { start_command: hard, pending_change: '' })
    t.equal(await served(web), words)
    t.match((await web.deployed()).status, 'success')
    t.equal(await served(web), words, 'a deploy uses it as well')
    const rolled = await admin.post(`${web.path}/rollback`, { deployment_id: first.id })
    t.match(await web.ended(rolled.body.id), { status: 'success' })
    t.equal(await served(web), words, "a rollback uses today's settings")

    await t.test(
      'one that does not start fails the deploy with what helps, and the old version serves on',
      async t => {
        await admin.put(web.path, { start_command: 'no-such-program --x' })
        t.match(await reloaded(web), {
          status: 'failed',
          step: 'prove-healthy',
          remedy: /start_command was not found .*begins with no-such-program/
        })
        t.equal(await served(web), words)
        await admin.put(web.path, { start_command: '/app' })
        t.match(await reloaded(web), { status: 'failed', remedy: /start_command cannot be executed/ })
        t.match(await admin.put(web.path, { start_command: 'a && b' }), {
          status: 400,
          body: { error: /start_command is started without a shell, which alone understands &/ }
        })
        t.match(await admin.put(web.path, { start_command: 'x'.repeat(4001) }), {
          status: 400,
          body: { error: /start_command/ }
        })
        t.match(await admin.put(web.path, { start_command: 'a\0b' }), {
          status: 400,
          body: { error: /start_command/ }
        })
      }
    )

    t.match(await admin.put(web.path, { start_command: '' }), { status: 200, body: { start_command: null } })
    t.match(await reloaded(web), { status: 'success' })
    t.equal(await served(web), 'own\n')
  })

  await t.test('an ENTRYPOINT stays and prepares what it prepares', async t => {
    const web = await lab.application(
      'prepared',
      files('ENTRYPOINT ["/app/entry"]\nCMD ["/app/serve", "own"]'),
      { start_command: hard }
    )
    t.match(await web.deployed(), { status: 'success', error_message: null })
    t.equal(await served(web), words)
    const [container] = await web.containers()
    const { Path, Args } = await engine.getContainer(container?.Id ?? '').inspect()
    t.same([Path, ...Args], ['/app/entry', '/app/serve', 'two words', "it's $HOME", '*'])
  })

  await t.test('an ENTRYPOINT that is a shell gets a line that means the same', async t => {
    const web = await lab.application(
      'shelled',
      files('ENTRYPOINT ["/bin/sh", "-c"]\nCMD ["/app/serve own"]'),
      { start_command: hard }
    )
    t.match(await web.deployed(), { status: 'success', error_message: null })
    t.equal(await served(web), words)
  })

  await t.test('an ENTRYPOINT in shell form would ignore it, and the deploy says so', async t => {
    const web = await lab.application('ignoring', files('ENTRYPOINT /app/serve own'), { start_command: hard })
    t.match(await web.deployed(), {
      status: 'failed',
      step: 'create',
      error_message: /ENTRYPOINT .* shell form, which ignores any start command/
    })
    t.same(await web.containers(), [])
  })

  await t.test('an image has one too, and another source begins without', async t => {
    const body = {
      name: 'image',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab',
      container_port: 8080,
      start_command: 'httpd -f -p 8080 -h /etc'
    }
    const made = await admin.post(`/api/projects/${lab.projectId}/applications`, body)
    t.match(made, { status: 201, body: { start_command: body.start_command } })
    const path = `/api/projects/${lab.projectId}/applications/${made.body.id as string}`
    t.match(
      (
        await admin.post(`${path}/change-source`, {
          type: 'git',
          source_repo: 'https://git.example.com/a.git'
        })
      ).body,
      { start_command: null }
    )
    t.match(
      (
        await admin.post(`${path}/change-source`, {
          type: 'image',
          source_image: 'busybox:lab',
          start_command: 'httpd -f'
        })
      ).body,
      { start_command: 'httpd -f' }
    )
  })
})
