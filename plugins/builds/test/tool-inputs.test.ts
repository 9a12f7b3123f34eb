import { symlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type DeployLab, sample } from '../../deployments/test/deploy-lab.js'
import { checkBuildpacks, imageOfBuildpack } from '../builders/buildpack-reference.js'
import { passVariables } from '../builders/tool-variables.js'
import { folder } from './kit.js'
import { openToolLab, valuesOf } from './tool-lab.js'

test('variables go by the environment; what would steer the program itself does not', t => {
  const variable = (key: string, value = 'v', isSecret = false) => ({ key, value, isSecret })
  const names = [
    'PATH',
    'LD_LIBRARY_PATH',
    'http_proxy',
    'HTTPS_PROXY',
    'BUILDKIT_HOST',
    'PYTHONPATH',
    'GODEBUG',
    'MISE_TRUSTED_CONFIG_PATHS',
    'npm_config_registry',
    'GIT_SSH_COMMAND',
    'AWS_CONFIG_FILE',
    'NODE_OPTIONS',
    'GOFLAGS',
    'XDG_CONFIG_HOME',
    'BASH_ENV'
  ]
  t.same(
    passVariables(
      names.map(name => variable(name)),
      { withSecrets: true }
    ),
    { env: {}, args: names.flatMap(name => ['--env', `${name}=v`]), withheld: [] }
  )
  t.same(
    passVariables(
      names.map(name => variable(name, 'v', true)),
      { withSecrets: true }
    ),
    { env: {}, args: [], withheld: names }
  )
  const harmless = [
    'LDAP_PASSWORD',
    'GITLAB_TOKEN',
    'GIT_TOKEN',
    'NPM_TOKEN',
    'NODE_ENV',
    'NODE_AUTH_TOKEN',
    'AWS_SECRET_ACCESS_KEY',
    'GOOGLE_CLIENT_SECRET',
    'PACKAGE',
    'GITHUB_TOKEN',
    'PATHS'
  ]
  t.same(
    passVariables(
      harmless.map(name => variable(name, 'v', true)),
      { withSecrets: true }
    ).withheld,
    []
  )
  t.same(
    passVariables([variable('PATH', 'a,b')], { withSecrets: true }).withheld,
    ['PATH'],
    'railpack takes arguments apart at commas'
  )
  t.same(
    passVariables(
      [
        variable('A', 'x,y'),
        variable('B', '', true),
        variable('NIXPACKS_PKGS', 'z'),
        variable('DATABASE_URL')
      ],
      { withSecrets: true }
    ),
    {
      env: { A: 'x,y', B: '', NIXPACKS_PKGS: 'z', DATABASE_URL: 'v' },
      args: ['--env', 'A', '--env', 'B', '--env', 'NIXPACKS_PKGS', '--env', 'DATABASE_URL'],
      withheld: []
    }
  )
  t.end()
})

test('a buildpack at an address is fetched by the platform, and never from a private host', async t => {
  if (!(await requireEngine(t))) return
  const server = createServer((_request, response) => {
    response.end('a buildpack')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
  })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/own.tgz`
  const deployed = async (lab: DeployLab, name: string, ...buildpacks: string[]): Promise<any> => {
    const application = await lab.application(name, sample('one'), { build_type: 'buildpacks' })
    await (await lab.k.as.session()).put(application.path, {
      builder_image: 'busybox:lab',
      custom_buildpacks: JSON.stringify(buildpacks)
    })
    return await application.deployed()
  }
  const { lab, tools } = await openToolLab(t)
  t.match(await deployed(lab, 'fetched', address, 'heroku/nodejs'), {
    status: 'success',
    error_message: null
  })
  const [file = '', ...rest] = valuesOf((await tools.called('pack')).argv, '--buildpack')
  t.match(file, /\/scratch\/buildpacks\/0\.cnb$/)
  t.same(rest, ['heroku/nodejs'])

  const { lab: strict } = await openToolLab(t, { GIT_PRIVATE_HOSTS: '127.0.0.1' })
  const redirecting = createServer((_request, response) => {
    response.writeHead(302, { location: 'http://10.0.0.1/own.tgz' }).end()
  })
  await new Promise<void>(resolve => redirecting.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    redirecting.close()
  })
  t.match(
    await deployed(strict, 'led', `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}/own.tgz`),
    {
      status: 'failed',
      error_message: /the host of a remote file 10\.0\.0\.1 has the private or local address/
    }
  )
})

test('buildpacks come from images, registries and the repository, never from files of the machine', async t => {
  const directory = await folder(t)
  await symlink('/etc', join(directory, 'link'))
  const check = async (reference: string) => await checkBuildpacks([reference], directory)
  for (const good of [
    'heroku/nodejs',
    'heroku/nodejs@1.2.3',
    'docker://example.com:5000/a/b:1',
    'urn:cnb:registry:x/y',
    'from=builder:x',
    'own/buildpack',
    'https://Example.com/a.tgz',
    'http://[::1]:80/a.tgz'
  ]) {
    await t.resolves(check(good), good)
  }
  for (const bad of [
    '/etc',
    '../x',
    'a/../../x',
    'file:///etc',
    'file:/etc',
    'ftp://x/y',
    'link',
    'link/ssl',
    '-x',
    'a,b',
    'a b'
  ]) {
    await t.rejects(check(bad), { status: 409, code: 'E_BUILD_BUILDPACK' }, bad)
  }
  t.same(
    ['docker://a/b:1', 'heroku/nodejs', 'heroku/nodejs@1.2.3', 'https://x/y', 'urn:cnb:x'].map(
      imageOfBuildpack
    ),
    ['a/b:1', 'heroku/nodejs', null, null, null]
  )
})
