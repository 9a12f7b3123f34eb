import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel, testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { decryptBytes, makeKeyPair } from '../../../sdk/age/index.js'
import { verifyArchive } from '../archive/archive-reader.js'
import { readRecipient } from '../recovery-key-service.js'
import { archives, backUp, makeKey } from './kit.js'

async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'busbar-recipient-'))
  t.teardown(async () => await rm(made, { recursive: true, force: true }))
  return made
}

test('BACKUP_ENCRYPTION_KEY is a recipient, or a file with one behind its comments', async t => {
  const { recipient, identity } = await makeKeyPair()
  const directory = await folder(t)
  const file = join(directory, 'recipient.txt')
  t.equal(await readRecipient(undefined), undefined)
  t.equal(await readRecipient(recipient), recipient)
  await writeFile(file, `# of the safe\n\n  ${recipient}  \nage1other\n`)
  t.equal(await readRecipient(file), recipient)
  for (const text of ['', '# only a comment\n', 'age1nonsense\n', `${identity}\n`]) {
    await writeFile(file, text)
    await t.rejects(readRecipient(file), { message: /holds no age recipient/ }, JSON.stringify(text))
  }
  for (const given of [join(directory, 'nothing'), directory, 'age1nonsense'])
    await t.rejects(readRecipient(given), { message: /nothing is backed up before it is corrected/ }, given)
})

test('archives are encrypted to it, and to the recovery key as well', { timeout: 200_000 }, async t => {
  const { recipient, identity } = await makeKeyPair()
  const file = join(await folder(t), 'recipient.txt')
  await writeFile(file, `# made by age-keygen\n${recipient}\n`)
  const clock = testClock('2026-11-28T12:00:00Z')
  const k = await createTestKernel({ clock, environment: { BACKUP_ENCRYPTION_KEY: file } })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  t.match((await admin.get('/api/backups/status')).body, {
    encryption_enabled: true,
    encryption_recipient: recipient
  })
  t.match(await backUp(admin), { status: 'succeeded', encrypted: true })
  const [first = ''] = await archives(k)
  t.match(await verifyArchive({ file: first, identity }), { keys: { pieces: 1 } })

  const recovery = await makeKey(admin)
  await clock.advance(1000)
  t.match(await backUp(admin), { status: 'succeeded', encrypted: true })
  const second = (await archives(k)).at(-1) ?? ''
  const bytes = await readFile(second)
  for (const one of [identity, recovery]) {
    t.match(await verifyArchive({ file: second, identity: one }), { keys: { pieces: 1 } })
    t.ok((await decryptBytes(one, bytes)).length > 0, 'each opens it alone')
  }
  await t.rejects(verifyArchive({ file: first, identity: recovery }), { message: /does not open/ })

  await t.test('while it cannot be read nothing is backed up, and the run says so', async t => {
    await rm(file)
    await clock.advance(1000)
    t.match(await backUp(admin), {
      status: 'failed',
      encrypted: false,
      error: /^BACKUP_ENCRYPTION_KEY is neither an age recipient \(age1…\) nor a file that can be read/
    })
    t.equal((await archives(k)).length, 2, 'also not in clear, nor to the recovery key alone')
    t.match((await admin.get('/api/backups/status')).body, { encryption_enabled: false })
  })
})
