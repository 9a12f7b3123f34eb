import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:fs'
import { access, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { skipWithout } from './requirements.js'

/** Chromium over its DevTools protocol: as much of it as tests of pages need. */
interface Page {
  goto(url: string): Promise<void>
  /** The value of an expression in the page; a promise is waited for. Throws what it throws. */
  evaluate<T = unknown>(expression: string): Promise<T>
  /** Waits until the expression is true. */
  until(expression: string): Promise<void>
  /** Clicks the first element of the selector, as `element.click()` does. */
  click(selector: string): Promise<void>
  /** Writes a text into a field, and tells the page so. */
  fill(selector: string, text: string): Promise<void>
  /** As a phone or a large screen has it. */
  resize(width: number, height: number): Promise<void>
  /** Requests to these addresses (`*` is anything) fail from now on, as without a network. */
  block(...addresses: readonly string[]): Promise<void>
  /** What the console was told of as an error: exceptions, refused files, violations of the content security policy. */
  readonly complaints: readonly string[]
}
export interface Browser {
  readonly page: Page
  close(): Promise<void>
}

type Json = Readonly<Record<string, any>>

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** One page in a browser of its own, without cookies. */
export async function openBrowser(): Promise<Browser> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-browser-'))
  const child = await launch(directory)
  try {
    const protocol = await Protocol.open(await addressOf(child))
    const page = await openPage(protocol)
    return {
      page,
      close: async () => {
        protocol.close()
        await end(child, directory)
      }
    }
  } catch (error) {
    await end(child, directory)
    throw error
  }
}

/** True when a browser is installed; else the test is skipped with a loud line, and with `CI=true` it fails. */
export async function requireBrowser(t: Pick<Test, 'plan'>): Promise<boolean> {
  if ((await installed()) !== undefined) return true
  const reason = `none of ${names.join(', ')} is installed (Debian: apt-get install chromium)`
  return skipWithout(t, { what: 'a browser', reason })
}

async function installed(): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter))
    for (const name of names) {
      const file = join(directory, name)
      const isThere = await access(file, constants.X_OK).then(
        () => true,
        () => false
      )
      if (isThere) return file
    }
  return undefined
}

async function launch(directory: string): Promise<ChildProcess> {
  const program = await installed()
  if (program === undefined) throw new Error('no browser is installed')
  const child = spawn(
    program,
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--remote-debugging-port=0',
      `--user-data-dir=${directory}`,
      'about:blank'
    ],
    // What it leaves beside its profile goes with it.
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, TMPDIR: directory } }
  )
  await once(child, 'spawn')
  return child
}

/** It is told on the error output, once. */
async function addressOf({ stderr }: ChildProcess): Promise<string> {
  if (stderr === null) throw new Error('the browser has no error output')
  for await (const line of createInterface({ input: stderr })) {
    const address = /DevTools listening on (ws:\S+)/.exec(line)?.[1]
    if (address !== undefined) {
      stderr.resume()
      return address
    }
  }
  throw new Error('the browser ended before it listened')
}

async function end(child: ChildProcess, directory: string): Promise<void> {
  const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
  child.kill('SIGKILL')
  await ended
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
}

class Protocol {
  #last = 0
  readonly #waiting = new Map<number, { resolve(value: Json): void; reject(error: Error): void }>()
  readonly #listeners = new Set<(method: string, params: Json) => void>()

  private constructor(private readonly socket: WebSocket) {
    socket.on('message', data => {
      const { id, method, params, result, error } = JSON.parse(String(data))
      if (id === undefined) for (const listener of this.#listeners) listener(method, params)
      else if (error === undefined) this.#waiting.get(id)?.resolve(result)
      else this.#waiting.get(id)?.reject(new Error(error.message))
      this.#waiting.delete(id)
    })
    socket.on('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the browser is gone'))
    })
  }

  static async open(address: string): Promise<Protocol> {
    const socket = new WebSocket(address, { perMessageDeflate: false })
    await once(socket, 'open')
    return new Protocol(socket)
  }

  on(listener: (method: string, params: Json) => void): void {
    this.#listeners.add(listener)
  }

  async send(method: string, params: object = {}, sessionId?: string): Promise<Json> {
    const id = ++this.#last
    return await new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.socket.send(JSON.stringify({ id, method, params, sessionId }))
    })
  }

  close(): void {
    this.socket.terminate()
  }
}

async function openPage(protocol: Protocol): Promise<Page> {
  const complaints: string[] = []
  const { targetId } = await protocol.send('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await protocol.send('Target.attachToTarget', { targetId, flatten: true })
  const send = async (method: string, params?: object) => await protocol.send(method, params, sessionId)
  protocol.on((method, params) => {
    if (method === 'Log.entryAdded' && params.entry.level === 'error')
      complaints.push(`${params.entry.text} ${params.entry.url ?? ''}`)
    if (method === 'Runtime.exceptionThrown')
      complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text)
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error')
      complaints.push(params.args.map((one: Json) => one.value ?? one.description).join(' '))
  })
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await send(`${domain}.enable`)

  const page: Page = {
    complaints,
    goto: async url => {
      await send('Page.navigate', { url })
      await page.until('document.readyState === "complete"')
    },
    evaluate: async expression => {
      const { result, exceptionDetails } = await send('Runtime.evaluate', {
        expression,
        awaitPromise: true,
        returnByValue: true
      })
      if (exceptionDetails !== undefined)
        throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
      return result.value
    },
    until: async expression => {
      await until(async () => (await page.evaluate(`Boolean(${expression})`)) === true, expression)
    },
    click: async selector => {
      await page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`)
    },
    fill: async (selector, text) => {
      await page.evaluate(`(() => {
        const field = document.querySelector(${JSON.stringify(selector)})
        field.value = ${JSON.stringify(text)}
        field.dispatchEvent(new Event('input', { bubbles: true }))
        field.dispatchEvent(new Event('change', { bubbles: true }))
      })()`)
    },
    resize: async (width, height) => {
      await send('Emulation.setDeviceMetricsOverride', {
        width,
        height,
        deviceScaleFactor: 1,
        mobile: width < 600
      })
    },
    block: async (...addresses) => {
      await send('Network.setBlockedURLs', { urls: addresses })
    }
  }
  return page
}
