import { createHash } from 'node:crypto'

/** A line of what the engine tells of the making of an image. */
export interface HistoryLine {
  readonly CreatedBy: string
  /** Of the layer that it has made; 0 too where it has made none. */
  readonly Size: number
}

/** Instructions that change the configuration alone. */
const configuring = new Set([
  'ARG',
  'CMD',
  'ENTRYPOINT',
  'ENV',
  'EXPOSE',
  'HEALTHCHECK',
  'LABEL',
  'MAINTAINER',
  'ONBUILD',
  'SHELL',
  'STOPSIGNAL',
  'USER',
  'VOLUME'
])
const classicPrefix = '/bin/sh -c #(nop)'

/**
 * The layers of an image, lowest first, each with what it adds. The engine keeps a layer once for all that have the same ones below it,
 * and `id` is the same for these alone.
 *
 * It tells sizes by the lines of the history (newest first), which says no more than its text of whether a line of size 0 has made a layer.
 * Where that does not come out even, what is not empty counts as lowest; what the history leaves out is the topmost's.
 */
export function layerSizes(
  diffIds: readonly string[],
  history: readonly HistoryLine[],
  sizeBytes: number
): ReadonlyArray<{ readonly id: string; readonly bytes: number }> {
  const lines = [...history].reverse()
  const likely = lines.filter(line => line.Size > 0 || !isConfiguring(line))
  const used = likely.length === diffIds.length ? likely : lines.filter(({ Size }) => Size > 0)
  const sizes = diffIds.map((_, index) => used[index]?.Size ?? 0)
  const rest = Math.max(0, sizeBytes - sizes.reduce((sum, bytes) => sum + bytes, 0))
  let id = ''
  return diffIds.map((diffId, index) => {
    id = id === '' ? diffId : `sha256:${createHash('sha256').update(`${id} ${diffId}`).digest('hex')}`
    return { id, bytes: (sizes[index] ?? 0) + (index === diffIds.length - 1 ? rest : 0) }
  })
}

function isConfiguring({ CreatedBy: text }: HistoryLine): boolean {
  const written = text.startsWith(classicPrefix) ? text.slice(classicPrefix.length) : text
  return configuring.has(written.trimStart().split(' ', 1)[0] ?? '')
}
