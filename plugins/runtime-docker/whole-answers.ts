import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type Docker from 'dockerode'

type Dial = Docker['modem']['dial']
type DialOptions = Parameters<Dial>[0]

/** What docker-modem calls back with; anything but an error is the answer. */
type Answered = (error: Error | null, answer: Buffer | object | null) => void

/**
 * docker-modem waits for the end of an answer and hears of nothing else: one whose connection is closed in the middle
 * of it never comes, and no call that was waiting for it ever settles. So it hands out every answer as a stream, which
 * fails when it is cut, and what is to be read as a whole is read here.
 */
export function readWholeAnswers(docker: Docker): void {
  const { modem } = docker
  const dial: Dial = modem.dial.bind(modem)
  modem.dial = (options, callback = () => {}) => {
    if (isStreamed(options)) {
      dial(options, callback)
      return
    }
    dial({ ...options, isStream: true }, (error, answer) => {
      if (error === null || error === undefined) wholeOf(answer as IncomingMessage, callback)
      else callback(error, null)
    })
  }
}

const isStreamed = ({ isStream, hijack, openStdin }: DialOptions): boolean =>
  isStream === true || hijack === true || openStdin === true

function wholeOf(answer: IncomingMessage, done: Answered): void {
  buffer(answer)
    .then(body => read(body, answer))
    .then(
      value => done(null, value),
      (error: unknown) => done(error as Error, null)
    )
}

/** As docker-modem reads it: what is no JSON is left as it came. */
function read(body: Buffer, { headers }: IncomingMessage): Buffer | object {
  if (body.length === 0) return body
  try {
    return (JSON.parse(body.toString()) as object | null) ?? body
  } catch {
    if (headers['content-type']?.startsWith('application/json') === true) throw new UnfinishedAnswer()
    return body
  }
}

/** Where the end of the connection is the end of the answer, a part of one can be told by what it says alone. */
export class UnfinishedAnswer extends Error {
  readonly code = 'ERR_STREAM_PREMATURE_CLOSE'

  constructor() {
    super('the answer is no JSON')
  }
}
