import { test } from 'tap'
import { requireDockerRegistry } from '../../../lab/docker-registry.js'
import { requireEngine } from '../../../lab/engine.js'
import { engine, hasImage } from '../../deployments/test/deploy-lab.js'
import { makeImage } from './hand-made-image.js'
import { startHandMadeRegistry } from './hand-made-registry.js'
import {
  account,
  anyLayer,
  deployImage,
  fetchedWith,
  openPlatform,
  privateImage,
  refused
} from './taken-lab.js'

test('a registry that names what the engine holds for another application hands out nothing of it', async t => {
  if (!(await requireEngine(t)) || !(await requireDockerRegistry(t))) return
  const lab = await openPlatform(t)
  const own = await startHandMadeRegistry(t)

  await t.test('not what was built for it', async t => {
    const victim = await lab.otherProject('victim', {
      Dockerfile: 'FROM busybox:lab\nRUN echo hidden > /secret\nCMD ["httpd", "-f", "-p", "8080"]\n'
    })
    const { image_tag: tag } = await victim.deployed()
    const built = await engine.getImage(tag).inspect()
    own.manifest('built', '1', { digest: built.Id, ...anyLayer }, [])
    const name = `${own.host}/built:1`
    const thief = await deployImage(lab, 'thief', name)
    t.match(thief.deployment, refused)
    t.match(await thief.again(), refused)
    t.same(await fetchedWith(built), [], 'no name is left for it')
    t.ok(await hasImage(tag), 'the image and its own name stay')
    own.manifest('none', '1', { digest: `sha256:${'0'.repeat(63)}1`, ...anyLayer }, [])
    const control = await deployImage(lab, 'control', `${own.host}/none:1`)
    t.match(control.deployment, { status: 'failed', image_tag: null })
  })

  await t.test('not what triggers and stages of its build have left without a name, which stays', async t => {
    const base = `triggers-${Date.now()}:1`
    await makeImage(t, base, 'FROM busybox:lab\nONBUILD COPY secret.txt /secret\n')
    const victim = await lab.otherProject('steps', {
      'secret.txt': 'hidden',
      Dockerfile: `FROM ${base} AS one\nRUN echo hidden > /other\nFROM ${base}\nCOPY --from=one /other /other\nCMD ["httpd", "-f", "-p", "8080"]\n`
    })
    const deployment = await victim.deployed()
    t.match(deployment, { status: 'success' })
    const made = await engine.listImages({ all: true })
    const { Id: baseId } = await engine.getImage(base).inspect()
    const parents = new Set(made.map(({ ParentId }) => ParentId))
    const trigger = made.find(({ ParentId }) => ParentId === baseId)?.Id ?? ''
    const stage =
      made.find(
        ({ Id, Labels, RepoTags }) =>
          Labels?.['application-id'] === deployment.application_id &&
          !parents.has(Id) &&
          !RepoTags?.some(name => !name.startsWith('<none>'))
      )?.Id ?? ''
    for (const [kind, digest] of Object.entries({ trigger, stage })) {
      own.manifest(kind, '1', { digest, ...anyLayer }, [])
      const name = `${own.host}/${kind}:1`
      const thief = await deployImage(lab, `thief-${kind}`, name)
      t.match(thief.deployment, refused, kind)
      const from = await lab.application(`from-${kind}`, {
        Dockerfile: `FROM ${name}\nRUN cat /secret /other\n`
      })
      const built = await from.deployed()
      t.match(built, refused, `FROM ${kind}`)
      t.notMatch(built.build_logs, /hidden/)
      t.ok(await hasImage(digest), `${kind} is there for the next build`)
    }
    const copied = `copied-${Date.now()}:1`
    await makeImage(t, copied, `FROM busybox:lab\nONBUILD COPY --from=${trigger} /secret /got\n`)
    const copy = await lab.application('copy', { Dockerfile: `FROM ${copied}\nRUN cat /got\n` })
    const built = await copy.deployed()
    t.match(built, { status: 'failed' })
    t.notMatch(built.build_logs, /hidden/)
  })

  await t.test('not what it was handed because of its account', async t => {
    const { name: privateName, seen, owner } = await privateImage(t, lab)
    own.manifest('private', '1', { digest: seen.Id, ...anyLayer }, [])
    const name = `${own.host}/private:1`
    const run = await deployImage(lab, 'run', name)
    t.match(run.deployment, refused)
    const from = await lab.application('from', { Dockerfile: `FROM ${name}\nRUN cat /private.txt\n` })
    const built = await from.deployed()
    t.match(built, refused)
    t.notMatch(built.build_logs, /hidden/)
    t.match(await run.again(), refused, 'it has not become its own')

    const locked = await startHandMadeRegistry(t, account)
    locked.manifest('private', '1', { digest: seen.Id, ...anyLayer }, [])
    const withAccount = await deployImage(lab, 'with-account', `${locked.host}/private:1`, account)
    t.match(withAccount.deployment, refused, 'an account of its own proves nothing')

    t.match(await owner.again(), { status: 'success' }, 'it stays with who had it')
    const colleague = await deployImage(lab, 'colleague', privateName, account)
    t.match(colleague.deployment, { status: 'success' }, 'its registry lets in whom it knows')
  })
})
