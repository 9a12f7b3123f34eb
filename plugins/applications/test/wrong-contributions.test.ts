import { randomUUID } from 'node:crypto'
import { applicationAddresses, applicationBuildTypes, applicationDeployHealth } from 'busbar/api/applications'
import { builders } from 'busbar/api/builds'
import { definePlugin, Problem } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

/** Contributes answers that no type allows. */
function wrongPlugin() {
  const said = { answer: (): unknown => undefined }
  const ask = () => said.answer() as never
  const definition = definePlugin({
    id: 'wrong',
    contributes: contribute => {
      contribute(applicationAddresses, 'wrong', { directUrl: ask })
      contribute(applicationBuildTypes, 'a-wrong', { buildTypes: ask })
      contribute(applicationDeployHealth, 'a-wrong', { latest: ask })
      contribute(builders, 'wrong', { build: ask, unavailable: ask, cache: { sizes: ask, clear: ask } })
    }
  })
  const requires = { applications: '^0.1.0', builds: '^0.1.0' }
  return { said, plugin: { manifest: { id: 'wrong', requires }, definition } }
}

const wrongAnswers: Readonly<Record<string, () => unknown>> = {
  'throws null': () => {
    throw null
  },
  'is asynchronous': async () => [randomUUID()],
  rejects: async () => await Promise.reject(new Error('late')),
  'is a list of null': () => [null],
  'throws a problem': () => {
    throw new Problem(503, 'E_AWAY', 'its service is away')
  },
  'throws a problem without a status': () => {
    throw new Problem(99, 'E_AWAY', 'its service is away')
  },
  'is a symbol': () => Symbol('s'),
  'is a list of symbols': () => [Symbol('s')],
  'is a number': () => 7,
  'is an object': () => ({ status: 7 }),
  'is a function': () => () => 'a'
}

test('applications are made, changed and shown whatever another plugin answers about them', async t => {
  const { said, plugin } = wrongPlugin()
  const environment = { DOCKER_HOST: 'unix:///nowhere/docker.sock' }
  const k = await createTestKernel({ inline: [plugin], environment })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'Acme', slug: 'acme' })
  const all = `/api/projects/${project.id}/applications`
  const source = { type: 'git', build_type: 'dockerfile', source_repo: 'https://git.example.com/a/b.git' }

  for (const [how, answer] of Object.entries(wrongAnswers)) {
    said.answer = answer
    const made = await ann.post(all, { name: how, ...source })
    t.match(made, { status: 201, body: { direct_url: null } }, `created while an answer ${how}`)
    const one = `${all}/${made.body.id}`
    t.match(await ann.put(one, { name: `${how}!` }), { status: 200 }, `changed while an answer ${how}`)
    t.match(await ann.put(one, { build_type_override: '[object Promise]' }), {
      status: 400,
      body: {
        error: /one of buildpacks, dockerfile, nixpacks, railpack, static(, wrong)? for/
      }
    })
    t.match(await ann.get(all), { status: 200 }, `listed while an answer ${how}`)
    t.match(await ann.get(`${one}/health`), { status: 200, body: { message: 'not deployed yet' } }, how)
    t.match(await ann.get('/api/builders'), { status: 200 }, `builders are listed while an answer ${how}`)
    const { body } = await ann.get('/api/builders')
    t.match(
      body.find(({ build_type: type }: { build_type: string }) => type === 'wrong'),
      {
        available: false,
        reason: /^the plugin "wrong" has not told whether it can build|^its service is away$/
      },
      how
    )
  }
})
