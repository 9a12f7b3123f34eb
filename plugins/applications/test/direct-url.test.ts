import type { Contributions, Log } from 'busbar/sdk'
import { test } from 'tap'
import { directUrls } from '../direct-url.js'

const silent = { error: () => {} } as unknown as Log

const asked = (...answers: ReadonlyArray<() => unknown>): string | null =>
  directUrls(
    {
      entries: () => answers.map((directUrl, at) => ({ key: String(at), plugin: 'p', value: { directUrl } }))
    } as unknown as Contributions<{ directUrl(applicationId: string): string | null }>,
    silent
  )('id')
const fail = (): never => {
  throw null
}

test('an application is shown without an address rather than not at all', async t => {
  const rejected = async (): Promise<never> => await Promise.reject(new Error('late'))
  for (const wrong of [
    fail,
    rejected,
    async () => 'http://a',
    () => 7,
    () => ({}),
    () => undefined,
    () => 'x'.repeat(5000)
  ])
    t.equal(
      asked(wrong, () => 'http://127.0.0.2:20000'),
      'http://127.0.0.2:20000',
      String(wrong)
    )
  t.equal(asked(fail), null)
  t.equal(
    asked(
      () => null,
      () => 'http://b'
    ),
    'http://b'
  )
  t.equal(asked(), null)
})
