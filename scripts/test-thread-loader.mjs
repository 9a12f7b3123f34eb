/** What a thread of a test's platform registers in place of tsx (`test-threads.mjs`): `.ts` leads to its bundle. */
import { register as registerHooks } from 'node:module'

export function register() {
  const bundles = new URL(import.meta.url).searchParams.get('bundles')
  registerHooks('./test-thread-hooks.mjs', import.meta.url, { data: { bundles } })
}
