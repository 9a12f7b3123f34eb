import { type TestAnswer, TestClient, type TestKernel } from 'busbar/sdk/testing'

/** The attributes and values of the cookies an answer sets, by name. */
export function cookiesOf(answer: TestAnswer): Record<string, { value: string; attributes: string[] }> {
  return Object.fromEntries(
    (answer.headers['set-cookie'] ?? []).map(line => {
      const [pair = '', ...attributes] = line.split('; ')
      const at = pair.indexOf('=')
      return [pair.slice(0, at), { value: pair.slice(at + 1), attributes }]
    })
  )
}

/** A client that goes on with the cookies of an answer, as a browser would. */
export function follow(k: TestKernel, answer: TestAnswer): TestClient {
  const cookies = cookiesOf(answer)
  const cookie = Object.entries(cookies)
    .map(([name, { value }]) => `${name}=${value}`)
    .join('; ')
  return new TestClient(k.url, { cookie, 'x-csrf-token': cookies.csrf_token?.value ?? '' })
}
