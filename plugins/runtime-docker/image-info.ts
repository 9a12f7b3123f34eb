import { type ImageInfo, loadedPrefix } from 'busbar/api/images'
import type Docker from 'dockerode'
import { declaredSize } from './declared-size.js'
import { claimedOwner, imageInstanceLabel } from './labels.js'

/** As the engine says it too; its types leave it out. */
const variantOf = (seen: Docker.ImageInspectInfo & { readonly Variant?: string }): string | undefined =>
  seen.Variant

/** What the engine says of an image, as it is handed out. */
export const imageInfo = (seen: Docker.ImageInspectInfo): ImageInfo => ({
  id: seen.Id,
  repoTags: seen.RepoTags ?? [],
  repoDigests: seen.RepoDigests ?? [],
  layers: seen.RootFS?.Layers ?? [],
  platform: [seen.Os, seen.Architecture, variantOf(seen)].filter(Boolean).join('/'),
  exposedPorts: tcpPorts(Object.keys(seen.Config.ExposedPorts ?? {})),
  sizeBytes: seen.Size,
  entrypoint: [seen.Config.Entrypoint ?? []].flat(),
  environment: Object.fromEntries(
    (seen.Config.Env ?? []).map(entry => [
      entry.slice(0, entry.indexOf('=')),
      entry.slice(entry.indexOf('=') + 1)
    ])
  ),
  declared: declaredSize(seen.Config),
  ...(Array.isArray(seen.Config.OnBuild) && { onBuild: seen.Config.OnBuild as readonly string[] }),
  // A claim is enough to keep others from it.
  ...(seen.Config.Labels?.[imageInstanceLabel] ? { builtFor: claimedOwner(seen.Config.Labels) } : {})
})

/** The engine writes `<none>:<none>` and `<none>@<none>` for what has none. */
export const hasName = (names: readonly string[] | null | undefined): boolean =>
  names?.some(name => !name.startsWith('<none>')) ?? false

export const isLoadedName = (name: string): boolean => name.startsWith(loadedPrefix)

/** It has come from a registry, by the engine or by `load`: what its labels say is its author's claim. */
export const isForeign = ({
  RepoTags: tags,
  RepoDigests: digests
}: {
  readonly RepoTags?: readonly string[] | null
  readonly RepoDigests?: readonly string[] | null
}): boolean => hasName(digests) || (tags?.some(isLoadedName) ?? false)

/** EXPOSE writes `8080/tcp`, `53/udp`, or a port alone. */
export const tcpPorts = (exposed: readonly string[]): number[] =>
  exposed
    .flatMap(entry => /^(\d+)(?:\/tcp)?$/.exec(entry)?.[1] ?? [])
    .map(Number)
    .filter(port => port >= 1 && port <= 65_535)
    .sort((a, b) => a - b)
