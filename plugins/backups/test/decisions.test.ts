import { test } from 'tap'
import { backupWarnings } from '../backup-warnings.js'
import { endpointOf } from '../destinations/providers.js'
import { fileName, isKeyPart, keyOf, trimSlashes } from '../runs/file-name.js'
import { runFailure } from '../runs/run-failure.js'

test('files say what they are, and when they were begun', async t => {
  const at = new Date('2026-11-29T02:03:04.567Z')
  const of = { slug: 'shop-db', at, isEncrypted: true, format: 'postgres-sql' }
  t.equal(fileName({ ...of, kind: 'database' }), 'shop-db-20261129T020304Z.backup.gz.age')
  t.equal(
    fileName({ ...of, kind: 'volume', format: 'tar', isEncrypted: false }),
    'shop-db-20261129T020304Z.tar.gz'
  )
  t.equal(fileName({ ...of, kind: 'volume', format: 'files' }), 'shop-db-20261129T020304Z.backup.gz.age')
})

test('keys lead nowhere else', async t => {
  for (const good of ['', 'a', 'a/b.c_d-e', '..a/b..', 'A/1']) t.ok(isKeyPart(good), good)
  for (const bad of ['..', 'a/../b', './a', 'a/.', 'a b', 'ä', 'a\\b', 'a\0', 'x'.repeat(501)])
    t.notOk(isKeyPart(bad), bad)
  t.equal(trimSlashes('//a/b/'), 'a/b')
  t.equal(trimSlashes('///'), '')
  t.equal(keyOf('', 'nightly', '', 'file'), 'nightly/file')
})

test('providers have their own hosts, and those that somebody names', async t => {
  t.equal(endpointOf({ provider: 's3', endpoint: '', region: 'eu-central-1' }), '')
  t.equal(
    endpointOf({ provider: 'b2', endpoint: '', region: 'us-west-004' }),
    's3.us-west-004.backblazeb2.com'
  )
  t.equal(endpointOf({ provider: 'wasabi', endpoint: '', region: 'eu-1' }), 's3.eu-1.wasabisys.com')
  t.equal(endpointOf({ provider: 'b2', endpoint: 'example.com', region: 'x' }), 'example.com')
})

test('what is thrown is told as a sentence that ends', async t => {
  t.equal(runFailure(new Error('the program was killed')), 'the program was killed')
  t.equal(runFailure(new TypeError('')), 'TypeError')
  t.equal(runFailure('text'), 'text')
  t.equal(runFailure(new Error('x'.repeat(5000))).length, 2000)
})

test('who has backups and no recovery key is warned', async t => {
  t.same(backupWarnings({ hasBackups: false, hasRecoveryKey: false }), [])
  t.same(backupWarnings({ hasBackups: true, hasRecoveryKey: true }), [])
  t.match(backupWarnings({ hasBackups: true, hasRecoveryKey: false }), [
    { code: 'backups_without_recovery_key' }
  ])
})
