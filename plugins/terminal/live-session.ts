import type { ContainerTerminal, TerminalSize } from 'busbar/api/containers'
import { bounded, type Clock, type DuplexSocket, Turns } from 'busbar/sdk'
import { readClientFrame } from './client-frame.js'
import type { EndReason } from './end-reason.js'
import type { SessionTimes } from './overdue.js'
import { Scrollback } from './screen/scrollback.js'
import { closedFrame, mostOutputBytes, outputFrame } from './server-frame.js'
import { WaitingRoom } from './waiting-room.js'

const scrollbackBytes = 128 * 1024
/** So much may be written that the client has not been sent. Less than the scrollback holds, so that it misses nothing. */
const mostAhead = 64 * 1024
/** What was written before the end has so long to reach the client. */
const farewellMs = 5000
/** An engine that takes longer for it does not keep anybody from typing. */
const resizeMs = 1000
/** An accepted upgrade is a socket soon, or never. */
const reservedMs = 15_000

interface Viewer {
  readonly socket: DuplexSocket
  /** The place in the output up to which it has been sent everything. */
  seen: number
  /** A program with the whole screen to itself has to draw it again for this client. */
  redraws: boolean
}

/** A terminal that runs in this process, with the sockets of whoever is attached to it, one after another. */
export class LiveSession implements SessionTimes {
  readonly #scrollback = new Scrollback(scrollbackBytes)
  /** Output has come, a viewer was sent some or has gone, or the session is over. */
  readonly #changes = new WaitingRoom()
  readonly #ended: Promise<void>
  #end: () => void = () => {}
  #over: EndReason | undefined
  /** What is written from there on is shown to nobody. */
  #lastPlace = Infinity
  #viewer: Viewer | undefined
  #hasBeenSeen = false
  /** Whose socket is about to be attached. */
  #reservedFor: object | undefined
  #reservedUntil = 0
  #typing: Promise<void> = Promise.resolve()
  #resizing: Promise<void> = Promise.resolve()
  #unattendedSince: number
  #lastActive: number

  constructor(
    readonly terminal: ContainerTerminal,
    private readonly clock: Clock
  ) {
    this.#unattendedSince = this.#now
    this.#lastActive = this.#now
    this.#ended = new Promise(resolve => {
      this.#end = resolve
    })
  }

  /** Why it has ended, or is about to. */
  get over(): EndReason | undefined {
    return this.#over
  }
  get isTaken(): boolean {
    return this.#viewer !== undefined || (this.#reservedFor !== undefined && this.#now < this.#reservedUntil)
  }
  get unattendedSince(): number | null {
    return this.#viewer === undefined ? this.#unattendedSince : null
  }
  get lastActive(): number {
    return this.#lastActive
  }

  /** For the socket of this request, whose upgrade is not done. */
  reserve(request: object): void {
    this.#reservedFor = request
    this.#reservedUntil = this.#now + reservedMs
  }

  /** Takes what is written, until there is no more. While whoever is attached is behind, it is not read from. */
  async read(): Promise<void> {
    for await (const piece of this.terminal.output) {
      this.#lastActive = this.#now
      this.#scrollback.append(piece)
      this.#changes.wake()
      while (this.#isAhead) await this.#changes.wait()
    }
  }

  /** Until the socket closes, or the session is over and has told so. */
  async attach(socket: DuplexSocket, request: object): Promise<void> {
    if (this.#reservedFor !== request || this.#viewer !== undefined) {
      socket.close(1013, 'somebody else is attached')
      return
    }
    this.#reservedFor = undefined
    const viewer: Viewer = { socket, seen: 0, redraws: false }
    this.#viewer = viewer
    const showing = this.#show(viewer)
    const hearing = this.#hear(viewer)
    // Each ends with its socket, whether somebody waits for it by then or not.
    for (const work of [showing, hearing]) work.catch(() => {})
    try {
      await Promise.race([showing, hearing, closed(socket), this.#ended])
      if (this.#over !== undefined) await this.#sayFarewell(viewer, showing, this.#over)
    } catch {
      // The socket is broken.
    } finally {
      this.#viewer = undefined
      this.#unattendedSince = this.#now
      this.#changes.wake()
    }
  }

  /** Whoever is attached is told, after what has been written until now. */
  close(reason: EndReason): void {
    if (this.#over !== undefined) return
    this.#over = reason
    this.#lastPlace = this.#scrollback.end
    this.#end()
    this.#changes.wake()
  }

  get #now(): number {
    return this.clock.elapsed()
  }

  get #isAhead(): boolean {
    const { end } = this.#scrollback
    return this.#over === undefined && this.#viewer !== undefined && end - this.#viewer.seen > mostAhead
  }

  /** Sends what there is and what comes; resolves when the session is over and everything is sent. */
  async #show(viewer: Viewer): Promise<void> {
    const isFirst = !this.#hasBeenSeen && this.#scrollback.start === 0
    this.#hasBeenSeen = true
    if (!isFirst) await this.#showAgain(viewer)
    while (this.#viewer === viewer) {
      if (viewer.seen < this.#scrollback.start) await this.#showAgain(viewer)
      const most = Math.min(mostOutputBytes, this.#lastPlace - viewer.seen)
      const piece = this.#scrollback.read(viewer.seen, most)
      if (piece.length > 0) {
        const seen = viewer.seen + piece.length
        await viewer.socket.send(outputFrame(piece))
        viewer.seen = seen
        this.#changes.wake()
      } else if (this.#over === undefined) {
        await this.#changes.wait()
      } else {
        return
      }
    }
  }

  /** The last screen, for a terminal that may be in any state. */
  async #showAgain(viewer: Viewer): Promise<void> {
    const { bytes, isAlternate } = this.#scrollback.screen()
    viewer.seen = this.#scrollback.end
    viewer.redraws = isAlternate
    for (let at = 0; at < bytes.length; at += mostOutputBytes)
      await viewer.socket.send(outputFrame(bytes.subarray(at, at + mostOutputBytes)))
  }

  async #hear(viewer: Viewer): Promise<void> {
    const { socket } = viewer
    const turns = new Turns()
    for await (const message of socket.messages) {
      if (this.#viewer !== viewer || this.#over !== undefined) return
      if (turns.isOver) await turns.pass()
      const frame = readClientFrame(String(message))
      if (frame.kind === 'malformed') {
        socket.close(1007, 'malformed JSON')
        return
      }
      if (frame.kind === 'input') await this.#type(frame.data, viewer)
      if (frame.kind === 'resize') await this.#resize(frame.size, viewer)
    }
  }

  /** One after another, also where an earlier socket left what the program has not read yet. */
  async #type(data: Buffer, viewer: Viewer): Promise<void> {
    if (data.length === 0) return
    this.#lastActive = this.#now
    // What is typed after a change of size is for a program that knows it.
    await Promise.all([this.#typing, this.#resizing])
    if (this.#viewer !== viewer || this.#over !== undefined) return
    this.#typing = this.terminal.write(data)
    await this.#typing
  }

  async #resize(size: TerminalSize, viewer: Viewer): Promise<void> {
    if (viewer.redraws && size.rows > 1) {
      // A size that is the same as before is no news to a program.
      viewer.redraws = false
      await this.#resizeInTime({ ...size, rows: size.rows - 1 })
    }
    this.#resizing = this.#resizeInTime(size)
  }

  async #resizeInTime(size: TerminalSize): Promise<void> {
    const resizing = async (): Promise<void> => await this.terminal.resize(size)
    await bounded(resizing, { ms: resizeMs, what: 'a resize' }).catch(() => {})
  }

  async #sayFarewell({ socket }: Viewer, showing: Promise<void>, reason: EndReason): Promise<void> {
    if (reason === 'access-lost') {
      // As the kernel closes it. What has been written since is nothing for them.
      socket.close(1008, 'access denied')
      return
    }
    const say = async (): Promise<void> => {
      await showing
      await socket.send(closedFrame(reason))
    }
    await bounded(say, { ms: farewellMs, what: 'a client' })
  }
}

async function closed({ signal }: DuplexSocket): Promise<void> {
  if (signal.aborted) return
  await new Promise(resolve => {
    signal.addEventListener('abort', resolve, { once: true })
  })
}
