/** Every sentence of `events.md` has its test, and no test claims what is not there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { accessClaims } from './access.js'
import { admissionClaims } from './admission.js'
import { channelClaims } from './channels.js'
import { databaseClaims } from './database-channels.js'
import { faultClaims, outboxClaims } from './faults.js'
import { protocolClaims } from './protocol.js'

/** Sentences that a test elsewhere holds, which cannot be shown from outside. */
const elsewhere: Readonly<Record<string, readonly [file: string, title: string]>> = {
  'The `updating` flag on the platform channel mirrors GET /api/version, which is the source of truth.': [
    'plugins/platform/test/updates.test.ts',
    'an update that begins is told live and by the version, and so is one that is abandoned'
  ],
  'platform: `updating` true at the start, false on a failure before the host is touched; nothing else.': [
    'plugins/platform/test/updates.test.ts',
    'an update that begins is told live and by the version, and so is one that is abandoned'
  ]
}

const folder = import.meta.dirname
const root = join(folder, '../..')
const sentences = readFileSync(join(folder, 'events.md'), 'utf8')
  .split('\n')
  .filter(line => line.startsWith('- '))
  .map(line => line.slice(2))

/** Files of one claim say it themselves, as to load them is to run them. */
const alone = ['heartbeat.test.ts', 'database-restart.test.ts', 'cut-off.test.ts'].map(
  file => /export const claimed =\s+'([^']+)'/.exec(readFileSync(join(folder, file), 'utf8'))?.[1] ?? file
)
const claimed = [
  ...[
    protocolClaims,
    admissionClaims,
    accessClaims,
    channelClaims,
    databaseClaims,
    faultClaims,
    outboxClaims
  ].flat(),
  ...alone.map(says => ({ says: [says] }))
].flatMap(({ says }) => says)

test('each sentence of the contract is claimed by a test, and nothing else is', t => {
  const known = [...claimed, ...Object.keys(elsewhere)]
  t.same(
    sentences.filter(one => !known.includes(one)),
    [],
    'without a test'
  )
  t.same(
    known.filter(one => !sentences.includes(one)),
    [],
    'not in the contract'
  )
  t.equal(new Set(sentences).size, sentences.length, 'each stands there once')
  t.end()
})

test('a test elsewhere that holds a sentence is there', t => {
  for (const [file, title] of Object.values(elsewhere))
    t.ok(readFileSync(join(root, file), 'utf8').includes(`test('${title}'`), `${file}: ${title}`)
  t.end()
})
