import { randomUUID } from 'node:crypto'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, type LabApplication, openLab, sample } from './deploy-lab.js'

/** The first stage takes long in earnest; `word` changes what comes after it. */
const stages = (library: string, word: string, last = 'RUN echo fine') =>
  sample(
    'good',
    'ok',
    `FROM busybox:lab AS library
RUN echo compiling ${library} > /library
COPY what.json /what.json
RUN echo linking ${word} >> /library
FROM node:20
WORKDIR /app
COPY --from=library /library /library
${last}
COPY . .
CMD ["node", "server.js"]
`
  )

/** The engine's images of the application that have no name. */
const nameless = async (applicationId: string): Promise<string[]> =>
  (await engine.listImages({ all: true, filters: { label: [`application-id=${applicationId}`] } }))
    .filter(({ RepoTags }) => (RepoTags ?? []).every(tag => tag === '<none>:<none>'))
    .map(({ Id }) => Id)

/** What made each of them. */
async function commands(applicationId: string): Promise<string> {
  const history = async (id: string) =>
    (await engine
      .getImage(id)
      .history()
      .catch(() => [])) as Array<{ CreatedBy: string }>
  return (
    await Promise.all(
      (await nameless(applicationId)).map(async id => (await history(id))[0]?.CreatedBy ?? '')
    )
  ).join('\n')
}

test('what builds leave behind is removed once no image and no next build needs it', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const library = randomUUID()
  const web = await lab.application('web', stages(library, 'one'))
  const other = await lab.application(
    'other',
    sample('good', 'ok', `FROM node:20\nRUN echo ${library} > /a\nRUN exit 1\n`)
  )
  t.equal((await other.deployed()).status, 'failed')
  const ofOther = (await nameless(other.id)).sort()
  t.ok(ofOther.length > 0)
  t.equal((await web.deployed()).status, 'success')

  /** Waits for a clean-up, which touches nothing of another application. */
  const cleanedUp = async (
    t: Test,
    app: LabApplication,
    what: string,
    holds: (text: string) => boolean
  ): Promise<void> => {
    await until(async () => holds(await commands(app.id)), what, 30_000)
    t.same((await nameless(other.id)).sort(), ofOther, 'the steps of another application stay')
  }

  await t.test('the stages of the image that runs stay, and are used again', async t => {
    const steady = await lab.application('steady', stages(library, 'alike'))
    t.equal((await steady.deployed()).status, 'success')
    const hasStage = (text: string): boolean => text.includes('linking alike')
    await cleanedUp(t, steady, 'the stage of the first build', hasStage)
    await steady.push(stages(library, 'alike', 'RUN echo still fine'))
    const again = await steady.deployed()
    t.equal(again.status, 'success')
    t.match(again.build_logs, /linking alike.*\n.*Using cache/)
    await cleanedUp(t, steady, 'the stage to stay', hasStage)
  })

  await t.test(
    'what a failed build has done stays for the next attempt, and goes after it has succeeded',
    async t => {
      await web.push(stages(library, 'two', 'RUN echo half way > /half && false'))
      t.equal((await web.deployed()).status, 'failed')
      await web.push(stages(library, 'two', 'RUN echo almost > /almost\nRUN false'))
      const second = await web.deployed()
      t.equal(second.status, 'failed')
      t.match(
        second.build_logs,
        /linking two.*\n.*Using cache/,
        'the attempt goes on where the last one failed'
      )
      t.match(await commands(web.id), 'almost')

      await web.push(stages(library, 'two'))
      const third = await web.deployed()
      t.equal(third.status, 'success', third.error_message)
      t.match(third.build_logs, /linking two.*\n.*Using cache/)
      await cleanedUp(
        t,
        web,
        'the attempts to go',
        text => !text.includes('almost') && !text.includes('linking one') && text.includes('linking two')
      )
      t.match(await commands(web.id), `compiling ${library}`, 'nor is what both had in common removed')
    }
  )

  await t.test('attempts that never succeed do not pile up', async t => {
    for (let attempt = 0; attempt < 6; attempt++) {
      await web.push(stages(library, 'two', `RUN echo attempt-${attempt} > /attempt\nRUN false`))
      t.equal((await web.deployed()).status, 'failed')
    }
    await cleanedUp(t, web, 'the oldest to go', text =>
      ['attempt-0', 'attempt-1', 'attempt-2'].every(old => !text.includes(old))
    )
    t.match(await commands(web.id), /attempt-5/)
    t.match(await web.read(), { status: 'running' })
  })

  await t.test(
    'a step that runs for nobody is removed, and what a person has started from an image is not',
    async t => {
      const { image_tag: tag } = (await admin.get(`${web.path}/deployments?limit=200`)).body.find(
        ({ status }: { status: string }) => status === 'success'
      )
      const { Id: image } = await engine.getImage(tag).inspect()
      const [step, byHand] = await Promise.all(
        [image, tag].map(async Image => await engine.createContainer({ Image, Cmd: ['sleep', '600'] }))
      )
      if (step === undefined || byHand === undefined) throw new Error('no containers')
      t.teardown(async () => {
        for (const one of [step, byHand]) await one.remove({ force: true }).catch(() => {})
      })
      await Promise.all([step.start(), byHand.start()])
      await web.push(stages(library, 'two'))
      t.equal((await web.deployed()).status, 'success')
      await until(
        async () =>
          await step.inspect().then(
            () => false,
            () => true
          ),
        'the step to go',
        30_000
      )
      t.equal((await byHand.inspect()).State.Running, true)
      await byHand.remove({ force: true })
    }
  )

  await t.test('nothing outlives its application, whose builds have succeeded or failed', async t => {
    const works = await lab.application('works', stages(library, 'for a while'))
    t.equal((await works.deployed()).status, 'success')
    const fails = await lab.application(
      'fails',
      sample('good', 'ok', `FROM node:20\nRUN echo ${library} > /b\nRUN exit 1\n`)
    )
    t.equal((await fails.deployed()).status, 'failed')
    for (const app of [works, fails]) {
      t.ok((await nameless(app.id)).length > 0)
      t.ok((await admin.delete(app.path)).status < 300)
      await until(
        async () =>
          (await engine.listImages({ all: true, filters: { label: [`application-id=${app.id}`] } }))
            .length === 0,
        'every image to go',
        60_000
      )
    }
    t.same((await nameless(other.id)).sort(), ofOther, 'the steps of another application stay')
  })
})
