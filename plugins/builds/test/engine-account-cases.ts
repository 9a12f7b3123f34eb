import { test } from 'tap'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { builders, type EngineKind, execIn, has, linesOf, openEngineLab, port } from './engine-lab.js'
import { makeImage, push } from './hand-made-image.js'
import { account } from './taken-lab.js'

/** Private bases in a build engine, which never sees an account. */
export function testEngineAccounts(name: string, kind: EngineKind): void {
  void test(`a private base in ${name}`, async t => {
    if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
    const registry = await startDockerRegistry(t, { account })
    const lab = await openEngineLab(t, kind)
    const admin = await lab.k.as.session()
    const base = `${registry.host}/team/base:1`
    await makeImage(t, base, 'FROM busybox:lab\nRUN echo private > /private.txt\n')
    await push(base, account)
    const ofProject = `/api/projects/${lab.projectId}/registries`
    const credentials = { registry: registry.host, ...account }
    const dockerfile = `FROM ${base} AS private\nFROM busybox:lab\nCOPY --from=private /private.txt /\n${port}`
    const application = await lab.application('mine', { Dockerfile: dockerfile })

    await t.test(
      'the platform pulls it with the account of the project, and gives it to the engine',
      async t => {
        t.match(await application.deployed(), { status: 'failed' }, 'not without an account')
        await admin.put(ofProject, credentials)
        const built = await application.deployed()
        t.match(built, { status: 'success', error_message: null, build_engine: kind.build_engine })
        const lines = linesOf(built)
        t.ok(
          has(lines, /^Pulling .* as deployer, the account of this project for its registry/),
          lines.join('\n')
        )
        t.ok(has(lines, /^Giving .*team\/base:1 to the build engine of this project$/), lines.join('\n'))
        t.notMatch(built.build_logs, account.password)
        const [builder] = await builders(lab.projectId)
        const found = await execIn(builder?.Id ?? '', '', [
          'sh',
          '-c',
          `grep -rl ${account.password} /var/lib/builder /run /etc /root 2>/dev/null | head -3; tr '\\0' '\\n' < /proc/1/environ | grep -c ${account.password}`
        ])
        t.equal(found, '0', 'and the account is nowhere in it')
      }
    )

    await t.test('another project without an account does not get it', async t => {
      const other = await lab.otherProject('other', { Dockerfile: dockerfile })
      t.match(await other.deployed(), { status: 'failed' })
    })

    await t.test('an account that is refused is named', async t => {
      await admin.put(ofProject, { ...credentials, password: 'wrong-0123456789' })
      t.match(await application.deployed(), {
        status: 'failed',
        error_message: /refused the user name deployer and its password, the account of the project/
      })
    })

    await t.test('without the account it is not there any more, and with it again it is', async t => {
      const [{ id }] = (await admin.get(ofProject)).body
      await admin.delete(`${ofProject}/${id}`)
      t.match(await application.deployed(), { status: 'failed' })
      // Its id follows from what its registry hands out.
      const [builder] = await builders(lab.projectId)
      const held = await execIn(builder?.Id ?? '', '', ['ls', `/var/lib/builder/bases/${kind.build_engine}`])
      const ids = held.match(/[0-9a-f]{64}/g) ?? []
      t.ok(ids.length > 0)
      for (const id of ids) {
        await application.push({ Dockerfile: `ARG OF=busbar-\nFROM \${OF}base:${id}\nRUN true\n${port}` })
        t.match(await application.deployed(), { status: 'failed' }, 'by none of the names that it has')
      }
      await application.push({ Dockerfile: dockerfile })
      await admin.put(ofProject, credentials)
      t.match(await application.deployed(), { status: 'success', error_message: null })
    })
  })
}
