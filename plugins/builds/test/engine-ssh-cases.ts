import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine } from '../../deployments/test/deploy-lab.js'
import { builders, type EngineKind, execIn, has, linesOf, openEngineLab, port, sample } from './engine-lab.js'

/** Asks the agent for the keys that it has, and prints the first; and tries to see the private part. */
const look = `const { connect } = require('node:net')
const socket = connect(process.env.SSH_AUTH_SOCK, () => socket.write(Buffer.from([0, 0, 0, 1, 11])))
let answer = Buffer.alloc(0)
socket.on('data', chunk => {
  answer = Buffer.concat([answer, chunk])
  if (answer.length < 13 || answer.length < 4 + answer.readUInt32BE(0)) return
  console.log('agent has ' + answer.subarray(13, 13 + answer.readUInt32BE(9)).toString('base64'))
  socket.end()
})
socket.on('error', error => { console.log(String(error)); process.exit(1) })
`
const withMount = (mount: string, command: string, base = 'node:20'): string =>
  `FROM ${base} AS looking
COPY look.cjs /look.cjs
RUN --mount=${mount} ${command}
FROM busybox:lab
WORKDIR /app
COPY --from=looking /look.cjs .
COPY index.html .
${port}`

/** What steps that mount the deploy key of their application can do with it. */
export function testSshMounts(name: string, kind: EngineKind): void {
  void test(`${name}, for steps that read other repositories`, async t => {
    if (!(await requireEngine(t))) return
    const lab = await openEngineLab(t, kind)
    const files = (dockerfile: string) => ({ ...sample('ssh'), 'look.cjs': look, Dockerfile: dockerfile })

    await t.test('the deploy key signs for the steps that mount it, and stays nowhere', async t => {
      const application = await lab.application(
        'signing',
        files(withMount('type=ssh,required=true', 'node /look.cjs && ! env | grep -q BUSBAR_SSH'))
      )
      const admin = await lab.k.as.session()
      const { public_key } = (await admin.post(`${application.path}/deploy-key`)).body as {
        readonly public_key: string
      }
      // The image of node is large, and is copied into the engine first.
      const { id } = await application.deploy()
      const deployed = await application.ended(id, 240_000)
      t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
      t.ok(
        has(linesOf(deployed), new RegExp(`^agent has ${public_key.split(' ')[1]?.replace(/[+]/g, '\\+')}$`)),
        linesOf(deployed).join('\n')
      )
      t.notMatch(deployed.build_logs, /PRIVATE KEY|b3BlbnNzaC1rZXktdjE/)
      const [builder] = await builders(lab.projectId)
      const found = await execIn(builder?.Id ?? '', '', [
        'sh',
        '-c',
        "grep -rlsF 'OPENSSH PRIVATE KEY' /var/lib/builder /run /tmp /dev/shm; grep -lF 'OPENSSH PRIVATE KEY' /proc/[0-9]*/environ 2>/dev/null; echo searched"
      ])
      t.equal(found, 'searched', 'it is in no file of the engine, and in no process')
      t.notMatch(JSON.stringify(await engine.getImage(deployed.image_tag).history()), /BUSBAR_SSH|PRIVATE/)
    })

    await t.test(
      'without a deploy key a step that needs one is refused, and another is warned of',
      async t => {
        const needs = await lab.application(
          'needs',
          files(withMount('type=ssh,required=true', 'true', 'busybox:lab'))
        )
        t.match(await needs.deployed(), {
          status: 'failed',
          error_message: /mounts a key for SSH.* no deploy key.*POST …\/deploy-key/
        })
        const mayDo = await lab.application(
          'may-do',
          files(withMount('type=ssh', 'test ! -S "$SSH_AUTH_SOCK"', 'busybox:lab'))
        )
        const deployed = await mayDo.deployed()
        t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
        t.ok(has(linesOf(deployed), /--mount=type=ssh.* no deploy key/), linesOf(deployed).join('\n'))
      }
    )
  })
}
