import { identity } from 'busbar/api/identity'
import { TestClient, type TestKernel } from 'busbar/sdk/testing'

/**
 * An admin of their own with each call, each signed in from an address of their own: abused passwords lock them, as they should,
 * and sessions end.
 */
export function newAdmins(
  kernel: () => TestKernel,
  password = 'correct horse battery'
): () => Promise<TestClient> {
  let people = 0
  return async () => {
    const k = kernel()
    const accounts = k.service(identity)
    people++
    const email = `admin-${people}@example.com`
    const { id } = await accounts.createUser({ email, password, role: 'admin' })
    const address = { ip: `10.1.${people >> 8}.${people % 256}`, userAgent: 'test' }
    const outcome = await accounts.login({ email, password }, address)
    if (outcome.kind !== 'signedIn') throw new Error('nobody is signed in')
    const { cookies } = outcome.grant
    return new TestClient(
      k.url,
      {
        cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; '),
        'x-csrf-token': cookies.find(({ name }) => name === 'csrf_token')?.value ?? ''
      },
      id
    )
  }
}
