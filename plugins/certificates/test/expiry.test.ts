import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { makeCertificate } from '../../../lab/certificates.js'
import { takeAwayFromEngine } from '../../../lab/engine.js'

takeAwayFromEngine()

const dayMs = 86_400_000

test('admins are told once that a certificate ends soon, and once that it has ended', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const upload = async (name: string, days: number): Promise<void> => {
    const { cert, key } = makeCertificate({ until: new Date(Date.now() + days * dayMs) })
    await admin.post('/api/certificates', { name, cert_pem: cert, key_pem: key })
  }
  const titles = async (): Promise<string[]> =>
    ((await admin.get('/api/notifications')).body.items as Array<{ title: string }>)
      .map(({ title }) => title)
      .toSorted()
  const look = async (): Promise<void> => {
    await k.enqueue('certificates', 'schedule.expiry', { dueAt: new Date().toISOString() })
  }
  await upload('lasting', 40)
  await upload('ending', 20.5)
  await upload('ended', -0.5)
  const wanted = ['The certificate ended has expired', 'The certificate ending expires in 20 days']
  await look()
  await until(async () => (await titles()).length === 2, 'both warnings')
  t.same(await titles(), wanted)

  await upload('ending too', 1.5)
  await look()
  await until(async () => (await titles()).length > 2, 'the next warning')
  t.same(await titles(), [...wanted, 'The certificate ending too expires in 1 days'], 'nothing is told twice')

  await k.query(
    "update certificates.certificate set not_after = now() - interval '1 hour' where name = 'ending'"
  )
  await look()
  await until(async () => (await titles()).length > 3, 'that it has ended meanwhile')
  t.ok((await titles()).includes('The certificate ending has expired'))
})
