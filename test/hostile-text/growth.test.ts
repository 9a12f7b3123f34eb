import { Readable } from 'node:stream'
import { networkOf } from 'busbar/sdk'
import { test } from 'tap'
import { readClientFrame } from '../../core/bus/client-frame.js'
import { readSettings } from '../../core/config/environment.js'
import { notificationRecord } from '../../core/declarations/notification-kinds.js'
import { raisedBy } from '../../core/events/raised.js'
import { lineSplitter } from '../../core/exec/line-splitter.js'
import { frameText } from '../../core/http/streams.js'
import { consoleLine } from '../../core/log/console-line.js'
import { createRedactor } from '../../core/log/redactor.js'
import { growthFault } from '../../lab/growth.js'
import { parseSshRepository } from '../../plugins/applications/api.js'
import { slugify } from '../../plugins/applications/slug.js'
import {
  parseBranch,
  parseBuildpacks,
  parseImage,
  parsePath,
  parseRepo
} from '../../plugins/applications/source-text.js'
import { parseStartCommand } from '../../plugins/applications/start-command.js'
import { csvLine } from '../../plugins/audit-logs/csv.js'
import { isKeyPart, trimSlashes } from '../../plugins/backups/runs/file-name.js'
import { imageOfBuildpack } from '../../plugins/builds/builders/buildpack-reference.js'
import { parseIgnoreFile } from '../../plugins/builds/context/ignore-patterns.js'
import { gitProblem, isRedirect, isUnadvertised, localProblem } from '../../plugins/builds/git/git-failure.js'
import { checkBranch, parseRepository } from '../../plugins/builds/git/repository-address.js'
import { isUnconnected, sshProblem } from '../../plugins/builds/git/ssh-failure.js'
import { errorCodes } from '../../plugins/builds/registry/client/answer-failure.js'
import { readImageConfig } from '../../plugins/builds/registry/client/image-config.js'
import { locateImage } from '../../plugins/builds/registry/client/image-location.js'
import { readManifest } from '../../plugins/builds/registry/client/manifest.js'
import { RegistryFailure } from '../../plugins/builds/registry/client/registry-failure.js'
import { readChallenge, readToken } from '../../plugins/builds/registry/client/token-challenge.js'
import { readKnownHosts } from '../../plugins/builds/ssh/host-key.js'
import { pemBlocks } from '../../plugins/certificates/pem.js'
import { inOneLine, subjectNames } from '../../plugins/certificates/subject-names.js'
import { mountPathFault } from '../../plugins/containers/mount-path.js'
import { explainExit } from '../../plugins/deployments/rollout/exit-diagnosis.js'
import { pathOf, rateLimitKeyOf } from '../../plugins/domains/api.js'
import { readHostname } from '../../plugins/domains/hostname.js'
import { readPath } from '../../plugins/domains/path-rule.js'
import { readFeature } from '../../plugins/domains/route-features.js'
import { fileModeOf } from '../../plugins/file-mounts/file-mode.js'
import { checkedEmail } from '../../plugins/identity/users/email.js'
import { levelOfLine } from '../../plugins/logs/collect/level.js'
import { linesOf } from '../../plugins/logs/kept/chunk.js'
import { isWanted, readFilter } from '../../plugins/logs/kept/history-filter.js'
import { chunksOf } from '../../plugins/logs/test/chunks-of.js'
import { isAskedFor } from '../../plugins/metrics/prometheus/asked-host.js'
import { literal } from '../../plugins/proxy-caddy/config/literal.js'
import { addressIn, hostName } from '../../plugins/proxy-caddy/dns/names.js'
import { handlersFault } from '../../plugins/proxy-caddy/handlers.js'
import { isProxyError, readAccessLine } from '../../plugins/proxy-caddy/log/access-line.js'
import { hostnameIn } from '../../plugins/proxy-caddy/log/hostname-in.js'
import { TlsFaults } from '../../plugins/proxy-caddy/log/tls-faults.js'
import { climbs } from '../../plugins/proxy-forwarder/forwarded-path.js'
import { readLines } from '../../plugins/requests/files/read-lines.js'
import { isRotatedName } from '../../plugins/requests/files/rotated-files.js'
import { maskPath } from '../../plugins/requests/record/mask-path.js'
import { AnswerBody } from '../../plugins/runtime-docker/answers/answer-body.js'
import { readHead } from '../../plugins/runtime-docker/answers/answer-head.js'
import { ReadBytes } from '../../plugins/runtime-docker/answers/read-bytes.js'
import { buildProblem } from '../../plugins/runtime-docker/build-failure.js'
import { readEngineError } from '../../plugins/runtime-docker/engine-failure.js'
import { readCounts } from '../../plugins/runtime-docker/files/file-count.js'
import { readOpenFiles, readProcesses } from '../../plugins/runtime-docker/files/open-files.js'
import { checkImage } from '../../plugins/runtime-docker/image-reference.js'
import { RowScanner } from '../../plugins/runtime-docker/inventory/json-rows.js'
import { listedText } from '../../plugins/runtime-docker/inventory/listed-text.js'
import { layerSizes } from '../../plugins/runtime-docker/layer-sizes.js'
import { readPlace } from '../../plugins/runtime-docker/logs/log-place.js'
import { logSplitter } from '../../plugins/runtime-docker/logs/log-splitter.js'
import { containerLines, jsonLines, OutputLines } from '../../plugins/runtime-docker/output-lines.js'
import { pullProblem } from '../../plugins/runtime-docker/pull-failure.js'
import { StageEnds } from '../../plugins/runtime-docker/stage-ends.js'
import { TarEnd } from '../../plugins/runtime-docker/tar-end.js'
import { supervisorAnswers } from '../../plugins/runtime-docker/terminal/supervisor-answers.js'
import { readClientFrame as readTerminalFrame } from '../../plugins/terminal/client-frame.js'
import { Scrollback } from '../../plugins/terminal/screen/scrollback.js'
import { volumeNameOf } from '../../plugins/volumes/volume-name.js'
import { originOf } from '../../sdk/http1/forwarded-for.js'
import { hostnameOf, targetOf } from '../../sdk/http1/forwarding/head.js'
import { setsPlatformCookie, withoutPlatformCookies } from '../../sdk/http1/forwarding/platform-cookies.js'
import { setsCookieOfOthers } from '../../sdk/http1/forwarding/sibling-cookies.js'
import { readBasicCredentials } from '../../sdk/http1/passwords/basic-credentials.js'
import { s3Endpoint } from '../../sdk/s3/index.js'
import { TarCheck } from '../../sdk/tar/tar-check.js'

const mebibyte = 2 ** 20

const attempt = {
  repo: 'https://example.com/a.git',
  branch: null,
  hasCredentials: false,
  memoryMib: 64,
  spaceMib: 64
}
const sshAttempt = { ...attempt, host: 'a', publicKey: 'b', knownFingerprint: 'c' }
const reference = { registry: 'docker.io', name: 'node', version: 'latest' }
const exit = { exitCode: 1, oomKilled: false }
const settings = {
  memoryLimit: 0,
  containerCaps: 'minimal',
  readonlyRootfs: true,
  startCommand: null
} as const
const toldInWords = notificationRecord('shop', 'shop.sold', {
  type: 'item.sold',
  label: 'Sold',
  description: 'Sold',
  group: 'Shop',
  severity: 'ok',
  audience: 'admins',
  title: '{text} {text}',
  body: '{text}\n{text}',
  link: '/{text}'
})
const redactor = createRedactor()
redactor.add([`${'a'.repeat(60_000)}b`, 'correct horse'])

function linesOut(text: string, pieceLength: number): number {
  let lines = 0
  const output = new OutputLines(() => {
    lines++
  })
  for (let at = 0; at < text.length; at += pieceLength) output.write(text.slice(at, at + pieceLength))
  output.end()
  return lines
}

function split(text: string, pieceLength: number): number {
  let lines = 0
  const splitter = lineSplitter(() => {
    lines++
  })
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceLength) splitter.push(bytes.subarray(at, at + pieceLength))
  splitter.end()
  return lines
}

async function eventsIn(text: string, pieceLength: number): Promise<number> {
  let events = 0
  const pieces = Array.from({ length: Math.ceil(text.length / pieceLength) }, (_, n) =>
    Buffer.from(text.slice(n * pieceLength, (n + 1) * pieceLength))
  )
  for await (const event of jsonLines(Readable.from(pieces, { objectMode: false })))
    events += Object.keys(event).length
  return events
}

/** The text as a list, whatever it is, and in one. */
function rowsIn(text: string, pieceLength: number): void {
  for (const whole of [JSON.stringify([text, { text }]), `[${text}`, text]) {
    const scanner = new RowScanner()
    const bytes = Buffer.from(whole)
    try {
      for (let at = 0; at < bytes.length; at += pieceLength)
        for (const _ of scanner.write(bytes.subarray(at, at + pieceLength)));
      for (const _ of scanner.end());
    } catch {}
  }
}

/** The text as the engine sends what a program writes without a terminal. */
async function answersIn(text: string, pieceLength: number): Promise<number> {
  const bytes = Buffer.from(text)
  const frames = Array.from({ length: Math.ceil(bytes.length / pieceLength) }, (_, n) => {
    const piece = bytes.subarray(n * pieceLength, (n + 1) * pieceLength)
    const head = Buffer.alloc(8)
    head[0] = 1
    head.writeUInt32BE(piece.length, 4)
    return Buffer.concat([head, piece])
  })
  let lines = 0
  for await (const line of supervisorAnswers(Readable.from(frames, { objectMode: false })))
    lines += Math.min(line.length, 1)
  return lines
}

/** Lines of the text, as what a tar says of its next file. */
function readTar(text: Buffer, pieceLength: number, end: TarEnd | TarCheck = new TarEnd()): void {
  const line = text.subarray(0, 90)
  const record = Buffer.concat(
    Array.from({ length: Math.floor(text.length / 100) }, () =>
      Buffer.from(`${line.length + 6} a=${line.toString('latin1')}\n`, 'latin1')
    )
  )
  const header = Buffer.alloc(512)
  header.write(record.length.toString(8).padStart(11, '0'), 124)
  header.write('x', 156)
  const tar = Buffer.concat([header, record, Buffer.alloc(1024)])
  for (let at = 0; at < tar.length; at += pieceLength) end.read(tar.subarray(at, at + pieceLength))
}

/** The log of a container, in pieces: as the engine frames it, or by way of a terminal. */
function messagesIn(text: string, pieceLength: number, hasTerminal: boolean): number {
  const body = Buffer.from(`2026-01-02T03:04:05.678901234Z ${text}`)
  const head = Buffer.alloc(8)
  head[0] = 1
  head.writeUInt32BE(body.length, 4)
  const bytes = hasTerminal ? body : Buffer.concat([head, body])
  const splitter = logSplitter(hasTerminal)
  for (let at = 0; at < bytes.length; at += pieceLength) {
    const piece = bytes.subarray(at, at + pieceLength)
    splitter.take(new ReadBytes(piece), 0, piece.length)
  }
  splitter.end()
  return splitter.messages().length
}

/** An answer of an engine, in chunks and pieces of it. */
function chunksIn(text: string, pieceLength: number): number {
  const bytes = Buffer.from(text)
  const body = new AnswerBody({ framing: { kind: 'chunked' } })
  let count = 0
  const take = (_: ReadBytes, start: number, end: number): void => {
    count += end - start
  }
  try {
    for (let at = 0; at < bytes.length; at += pieceLength)
      body.read(new ReadBytes(bytes.subarray(at, at + pieceLength)), 0, take)
  } catch {
    // What is no chunk ends it.
  }
  return count
}

/** A line as it is kept and looked for. */
function keptLines(text: string): number {
  const lines = text.split('\n').map(message => ({ ms: 0, nanos: 0, kind: 0, message }))
  const filter = readFilter({ q: text.slice(0, 500) }, text)
  return chunksOf(lines, one => one)
    .flatMap(linesOf)
    .filter(line => isWanted(filter, line)).length
}

/** For what costs more per character, or is given no more. */
const eighth = (text: string): string => text.slice(0, text.length / 8)

/** What reads text that comes from outside; what it thinks of it does not matter here. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  'the errors of git': text => gitProblem(text, attempt),
  'the errors of ssh': text => sshProblem(text, sshAttempt),
  'whether ssh has connected': isUnconnected,
  'the hosts that ssh has met': text => readKnownHosts(text, 'a'),
  'the errors of git on files': text => localProblem(text, { repo: 'a', memoryMib: 1, spaceMib: 1 }, 'b'),
  'what git says of redirects and commits': text => isRedirect(text) || isUnadvertised(text),
  'the address of a repository': text => parseRepository(`https://example.com/${text}`),
  'the address of a repository, whole': text => parseRepository(text),
  'the address of a repository over SSH': text => parseSshRepository(`ssh://git@example.com/${text}`),
  'the address of a repository over SSH, short': text => parseSshRepository(`git@example.com:${text}`),
  'a branch for git': text => {
    checkBranch(text)
  },
  'a repository that is sent': text => parseRepo(text),
  'a branch that is sent': text => parseBranch(text),
  'an image that is sent': text => parseImage(text, 'image'),
  'a path that is sent': text => parsePath(text, 'path'),
  'buildpacks that are sent': text => parseBuildpacks(JSON.stringify([text])),
  'where something is mounted': text => mountPathFault({ kind: 'file', path: `/${text}` }),
  'the name of a volume': volumeNameOf,
  'the mode of a file': fileModeOf,
  'a start command': text => parseStartCommand(text),
  'a name that becomes a slug': slugify,
  'an image the engine is asked for': text => {
    checkImage(text)
  },
  'a buildpack as an image': imageOfBuildpack,
  'an ignore file': text => parseIgnoreFile(eighth(text)),
  'a failed build': text =>
    buildProblem(text, { dockerfile: 'Dockerfile', memoryBytes: 1, baseImage: 'node' }),
  'a failed pull': text => pullProblem({ reference, image: 'node' }, text),
  'an image a registry is asked for': text => locateImage(text),
  'a manifest of a registry': text =>
    readManifest(Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: text })), text),
  'a configuration of an image': text =>
    readImageConfig(Buffer.from(JSON.stringify({ os: text, architecture: text })), 1),
  'what a registry asks for': text => readChallenge(`Bearer ${text}`),
  'what a registry asks for, whole': readChallenge,
  'what a token service answers': text => readToken(Buffer.from(JSON.stringify({ token: text }))),
  'why a registry refuses': text => errorCodes(text, false),
  'the words of a registry': text => new RegistryFailure('answer', text),
  'an error of the engine': text => readEngineError(new Error(text)),
  'steps of a build': text => {
    new StageEnds().read(text)
  },
  'the last words of a container': text => explainExit({ ...exit, lines: [text] }, settings),
  'cookies of a visitor': withoutPlatformCookies,
  'a cookie that an application sets': setsPlatformCookie,
  'a certificate as PEM': text => pemBlocks(`-----BEGIN X-----${text}`, 64),
  'the names of a certificate': text => subjectNames(`DNS:a, DNS:${text}`),
  'a distinguished name': inOneLine,
  'a hostname that is to be served': readHostname,
  'the path of a rule': readPath,
  "a line of Caddy's access log": text =>
    readAccessLine(text) ||
    isProxyError(`{"logger":"http.log.access","request":{"host":${JSON.stringify(text)}}}`),
  "a line of Caddy's own log": text =>
    new TlsFaults().read(
      JSON.stringify({ level: 'error', logger: 'tls.obtain', identifier: 'a', error: `[a] ${text}` }).slice(
        0,
        65_000
      )
    ),
  'a host as Caddy writes it': text => hostnameIn(text),
  'a name that Caddy asks for': text => addressIn(`v4-${text}`) || addressIn(`v6-${text}`) || hostName(text),
  'a text in the configuration of Caddy': text => literal(text),
  'handlers of Caddy': text =>
    handlersFault([{ handler: 'headers', request: { set: { [text.slice(0, 50)]: [text] } } }]),
  'the path of a request to a rule': text => climbs(`/${text}`) || pathOf(`/${text}`),
  'the addresses that a request has come by': text =>
    originOf('10.0.0.1', text, () => true) && originOf('10.0.0.1', `${text}10.0.0.2`, () => true),
  'the prefix of a destination': text =>
    isKeyPart(trimSlashes(text)) || isKeyPart(`${'/'.repeat(text.length)}${text}`),
  'the endpoint of a destination': text => s3Endpoint(text) ?? s3Endpoint(`https://${text}`),
  'a name and a password for a route': text =>
    readBasicCredentials(`Basic ${text}`) ?? readBasicCredentials(text),
  'what shares a limit of rate': text => rateLimitKeyOf(text) ?? rateLimitKeyOf(`{http.request.${text}}`),
  'the Host of who scrapes figures': text => isAskedFor('127.0.0.1', text),
  'the host of a request': text => hostnameOf({ host: text }),
  'the path of a recorded request': text =>
    maskPath(`/${text}`) ||
    maskPath(`/?${text}`) ||
    maskPath(`/?a=${text}`) ||
    maskPath(`/;${text}?${text}=1`),
  'lines of an access log': text =>
    readLines(Buffer.from(text), { isMidLine: false, isLast: true, most: mebibyte }),
  'the name of a rotated access log': text => isRotatedName(`access-${text}.log`, 'access.log'),
  'the configuration of a route feature': text =>
    readFeature('redirect', { from: text, to: text }) || readFeature('ip_allowlist', { ranges: [text] }),
  'a cookie for others': text =>
    setsCookieOfOthers(`a=b;${text}`, 'a.example.com') ||
    setsCookieOfOthers(`a=b; Domain=${text}`, 'a.example.com'),
  'the target of a request': text => targetOf('GET', `http://example.com${text}`),
  'the address of a client': networkOf,
  'an e-mail address': checkedEmail,
  'a frame of a client': readClientFrame,
  'a frame of a terminal': readTerminalFrame,
  'what a terminal shows again': text => {
    const scrollback = new Scrollback(128 * 1024)
    scrollback.append(Buffer.from(text))
    return scrollback.screen().bytes.length
  },
  'what a supervisor answers': async text => await answersIn(text, 64 * 1024),
  'a frame for a client': text => frameText({ data: text }),
  'a cell of a table': text => csvLine([text]),
  'a public address': text => readSettings({ PUBLIC_BASE_URL: `https://example.com/${text}` }).publicUrl,
  'the words of a notification': text =>
    raisedBy([toldInWords], { text }, { at: new Date(0), onFault: () => {} }),
  'a line of the log': text =>
    consoleLine(
      JSON.stringify({ level: 'info', time: '', msg: text, other: text, err: { stack: text } }),
      false
    ),
  'secrets in a line': text => redactor.clean(text),
  'secrets in JSON': text => redactor.cleanJson(JSON.stringify({ msg: text })),
  'output in large pieces': text => linesOut(text, 64 * 1024),
  'output in small pieces': text => linesOut(eighth(text), 7),
  'what processes of containers hold open': text => readOpenFiles(text),
  'processes of containers': text => readProcesses(text),
  'the history of an image': text =>
    layerSizes(
      ['a'],
      text.split('\n').map(line => ({ CreatedBy: `/bin/sh -c #(nop)${line}`, Size: 0 })),
      1
    ),
  'counts of files': text => readCounts(text),
  'the log of a container': text => messagesIn(text, 64 * 1024, false),
  'the log of a container in small pieces': text => messagesIn(eighth(text), 7, false),
  'the log of a container with a terminal': text => messagesIn(text, 64 * 1024, true),
  'the log of a container with a terminal in small pieces': text => messagesIn(eighth(text), 7, true),
  'an answer of an engine': text =>
    chunksIn(`1;${text}\n`, 64 * 1024) + chunksIn('1\r\nx\r\n'.repeat(text.length / 6), 64 * 1024),
  'an answer of an engine in small pieces': text => chunksIn(`1;${eighth(text)}\n`, 7),
  'the head of an answer': text => readHead(Buffer.from(`HTTP/1.1 200 OK\r\nA: ${text}\r\n\r\n`)),
  'a place in a log': readPlace,
  'the level of a line': levelOfLine,
  'lines that are kept and looked for': text => keptLines(eighth(text)),
  'filters of a history': text => readFilter({ q: text, level: text, since: text, session: text }, text),
  'output of a container': text => containerLines(Buffer.from(text), true),
  'lines of a program in large pieces': text => split(text, 64 * 1024),
  'lines of a program in small pieces': text => split(eighth(text), 7),
  'events of the engine': async text => await eventsIn(`{"stream":${JSON.stringify(text)}}\n`, 64 * 1024),
  'events of the engine in small pieces': async text =>
    await eventsIn(`{"stream":${JSON.stringify(eighth(text))}}`, 7),
  'a list of the engine': text => rowsIn(text, 64 * 1024),
  'a list of the engine in small pieces': text => rowsIn(eighth(text), 7),
  'a name of a thing on the engine': listedText,
  'a record in a tar of a container': text => readTar(Buffer.from(text), 64 * 1024),
  'a record in a tar of a container in small pieces': text => readTar(Buffer.from(eighth(text)), 7),
  'a record in a tar of a volume': text => readTar(Buffer.from(text), 64 * 1024, new TarCheck()),
  'a record in a tar of a volume in small pieces': text =>
    readTar(Buffer.from(eighth(text)), 7, new TarCheck())
}

/** Repeated, each begins something that never ends. */
const repeated = ['a', ' ', '"', '\\"', '\\', '[', 'pack ', '\n']
const repeatedLess = [
  "'",
  '\r',
  '-',
  '/',
  '@',
  ':',
  '://a:',
  '%',
  '.',
  'bearer ',
  'expected ',
  'repository ',
  'Remote branch ',
  'base name ',
  'the --',
  'lookup ',
  '**/',
  'https://'
]

for (const [title, read] of Object.entries(readers)) {
  test(`${title}: ten times the text takes about ten times as long`, async t => {
    for (const part of [...repeated, ...repeatedLess]) {
      const fault = await growthFault(repeated.includes(part) ? mebibyte : mebibyte / 8, async size => {
        const text = part.repeat(Math.ceil(size / part.length))
        // A refusal is as good an answer as any.
        try {
          await read(text)
        } catch {}
      })
      if (fault !== null) t.fail(`${JSON.stringify(part)}: ${fault}`)
    }
    t.pass('all were read')
  })
}

test('a reader that begins again everywhere is found', async t => {
  t.type(await growthFault(150_000, size => /pack .*corrupt/.test('pack '.repeat(size / 5))), 'string')
})
