import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createTestKernel,
  TestClient,
  type TestKernel,
  type TestKernelOptions,
  until
} from 'busbar/sdk/testing'
import Docker from 'dockerode'
import type { Test } from 'tap'
import { WebSocket } from 'ws'

const machine = new Docker()

/** An attached client: what it was shown, and how its socket ended. */
export class TestTerminal {
  text = ''
  readonly frames: Array<Readonly<Record<string, unknown>>> = []
  end: { readonly code: number; readonly reason: string } | undefined

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as Readonly<Record<string, unknown>>
      if (frame.type === 'output') this.text += Buffer.from(String(frame.data), 'base64').toString()
      else this.frames.push(frame)
    })
    socket.on('close', (code, reason) => {
      this.end = { code, reason: reason.toString() }
    })
    socket.on('error', () => {})
  }

  /** Rejects with the status (`Unexpected server response: 404`) when the upgrade is refused. */
  static async attach(client: TestClient, sessionId: string, headers: object = {}): Promise<TestTerminal> {
    const socket = new WebSocket(`${client.url.replace('http', 'ws')}/api/ws/terminal/${sessionId}`, {
      headers: { ...client.credential, ...headers }
    })
    const attached = new TestTerminal(socket)
    await once(socket, 'open')
    return attached
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  type(text: string): void {
    this.send({ type: 'input', data: Buffer.from(text).toString('base64') })
  }

  async shows(pattern: RegExp, timeoutMs?: number): Promise<void> {
    await until(() => pattern.test(this.text), `a terminal shows ${String(pattern)}`, timeoutMs).catch(
      (error: unknown) => {
        throw new Error(`${String(error)}; it shows ${JSON.stringify(this.text.slice(-2000))}`)
      }
    )
  }

  async closed(): Promise<{ readonly code: number; readonly reason: string }> {
    return await until(() => this.end, 'the socket closes', 60_000)
  }

  async leave(): Promise<void> {
    this.socket.close()
    await this.closed()
  }
}

/** One more sign-in of the user. */
export async function signIn(k: TestKernel, name: string): Promise<TestClient> {
  const { id, email, password } = await k.user(name)
  const { status, headers } = await k.as.anonymous().post('/api/auth/login', { email, password })
  if (status !== 200) throw new Error(`the login was answered ${status}`)
  const cookies = (headers['set-cookie'] ?? []).map(line => line.split(';')[0] ?? '')
  const csrf = cookies.find(cookie => cookie.startsWith('csrf_token='))?.split('=')[1] ?? ''
  return new TestClient(k.url, { cookie: cookies.join('; '), 'x-csrf-token': csrf }, id)
}

/** An image without any shell, that serves on 8080; its name. */
export async function imageWithoutShell(t: Pick<Test, 'teardown'>): Promise<string> {
  const name = `busbar-test-shell-less:${randomBytes(4).toString('hex')}`
  const directory = await mkdtemp(join(tmpdir(), 'busbar-shell-less-'))
  try {
    await writeFile(
      join(directory, 'Dockerfile'),
      'FROM busybox:lab\nEXPOSE 8080\nCMD ["/usr/bin/httpd", "-f", "-p", "8080", "-h", "/tmp"]\nRUN rm -f /usr/bin/sh /usr/bin/ash\n'
    )
    const stream = await machine.buildImage({ context: directory, src: ['Dockerfile'] }, { t: name })
    await new Promise<void>((resolve, reject) =>
      machine.modem.followProgress(stream, error => (error === null ? resolve() : reject(error)))
    )
    t.teardown(async () => await machine.getImage(name).remove({ force: true }))
    return name
  } finally {
    await rm(directory, { recursive: true })
  }
}

export interface TerminalLab {
  k: TestKernel
  readonly projectId: string
  readonly applicationId: string
  /** `/api/projects/…/applications/…` */
  readonly path: string
  /** The id of the container that serves. */
  container(): Promise<string>
  /** Commands that run in it. */
  processes(containerId?: string): Promise<string[]>
  /** Until nothing there matches. */
  gone(pattern: RegExp, containerId?: string): Promise<void>
  runs(pattern: RegExp, containerId?: string): Promise<void>
  /** A new session's id; fails unless it is made. */
  session(client: TestClient, body?: object): Promise<string>
  open(client: TestClient, body?: object): Promise<TestTerminal>
  /** Details of the ends that the audit log has, the newest first. */
  ends(): Promise<Array<Readonly<Record<string, unknown>>>>
  /** The platform again, on the same database and folder. */
  restart(options?: TestKernelOptions): Promise<void>
}

const serve = `sh -c "mkdir -p /tmp/w && echo up > /tmp/w/index.html && exec httpd -f -p 8080 -h /tmp/w"`

/** A platform with an application that runs busybox, owned by the user `ann`; on `docker`, where `environment` names it. */
export async function openTerminalLab(
  options: TestKernelOptions & { readonly docker?: Docker } = {},
  fields: object = {}
): Promise<TerminalLab> {
  const { docker = machine, ...kernelOptions } = options
  const k = await createTestKernel(kernelOptions)
  const ann = await k.as.session('ann')
  const projectId = (
    await ann.post('/api/projects', { name: 'Lab', slug: `lab-${randomBytes(3).toString('hex')}` })
  ).body.id as string
  const { body } = await ann.post(`/api/projects/${projectId}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab',
    container_port: 8080,
    start_command: serve,
    ...fields
  })
  const applicationId = body.id as string
  const slug = body.slug as string
  const path = `/api/projects/${projectId}/applications/${applicationId}`
  const lab: TerminalLab = {
    k,
    projectId,
    applicationId,
    path,
    container: async () => {
      const running = await docker.listContainers({ filters: { label: [`application-id=${applicationId}`] } })
      const serving = running.find(({ Names: names }) => names.includes(`/${slug}`))
      if (serving === undefined) throw new Error('no container serves')
      return serving.Id
    },
    processes: async containerId => {
      const id = containerId ?? (await lab.container())
      const { Processes: rows } = (await docker.getContainer(id).top({ ps_args: '-eo pid,args' })) as {
        Processes: string[][]
      }
      return rows.map(row => row[1] ?? '')
    },
    gone: async (pattern, containerId) => {
      await until(
        async () => !(await lab.processes(containerId)).some(one => pattern.test(one)),
        `${String(pattern)} is gone`
      )
    },
    runs: async (pattern, containerId) => {
      await until(
        async () => (await lab.processes(containerId)).some(one => pattern.test(one)),
        `${String(pattern)} runs`
      )
    },
    session: async (client, asked = {}) => {
      const made = await client.post(`${path}/terminal`, asked)
      if (made.status !== 201) throw new Error(`no session: ${made.status} ${JSON.stringify(made.body)}`)
      return made.body.session_id as string
    },
    open: async (client, asked) => await TestTerminal.attach(client, await lab.session(client, asked)),
    ends: async () =>
      (
        await lab.k.query<{ details: Readonly<Record<string, unknown>> }>(
          "select details from kernel.audit_log where action = 'terminal.session.ended' order by created_at desc, id"
        )
      ).map(({ details }) => details),
    restart: async (more = kernelOptions) => {
      const { state } = lab.k
      await lab.k.stop()
      lab.k = await createTestKernel({ ...more, state })
    }
  }
  await deployed(lab, ann)
  return lab
}

/** Deploys, or what `verb` says, and waits for its success. */
export async function deployed(
  { path }: Pick<TerminalLab, 'path'>,
  client: TestClient,
  verb = 'deploy'
): Promise<void> {
  const { body } = await client.post(`${path}/${verb}`)
  const ended = await until(
    async () => {
      const { body: now } = await client.get(`${path}/deployments/${body.id as string}`)
      return now.finished_at === null ? undefined : now
    },
    'the deployment ends',
    120_000
  )
  if (ended.status !== 'success') throw new Error(`not deployed: ${JSON.stringify(ended)}`)
}
