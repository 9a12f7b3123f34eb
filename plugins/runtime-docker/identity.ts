import type { Owner } from 'busbar/api/containers'
import type { Secrets } from 'busbar/sdk'
import type Docker from 'dockerode'
import {
  claimedOwner,
  emptyLabels,
  imageInstanceLabel,
  instanceLabel,
  type Labels,
  ownerLabels,
  ownerText,
  signatureLabel
} from './labels.js'

export type Signatures = Pick<Secrets, 'sign' | 'verify'>
type Host = Pick<
  Docker.HostConfig,
  'ContainerIDFile' | 'Init' | 'LogConfig' | 'RestartPolicy' | 'SecurityOpt'
>
export interface InspectedContainer {
  readonly Config: { readonly Labels?: Labels | null }
  readonly HostConfig: Host
}
interface Named {
  readonly Name: string
  readonly Labels?: Labels | null
}

type Kind = 'container' | 'holder' | 'image' | 'network' | 'volume'
type Claim = Labels | null | undefined

const markPrefix = 'busbar:'

/**
 * Whose a thing on the engine is. A label is a claim: a Dockerfile, a base image and a registry can set any, and
 * copy those of another owner. So nothing is taken for ours unless it is signed with the key of the installation,
 * and where a tenant could copy the signature as well, it stands where no tenant can write:
 *
 * - a container has it in its host configuration, of which nothing ever comes from an image or a Dockerfile (nor from
 *   `docker commit`): a copy of all labels leaves a step, or a container started by hand, without an owner. It is not the
 *   name that is signed, because deploys rename containers;
 * - a network and a volume have it in a label, over their name, which only one of them can have;
 * - what keeps volumes of a container that has gone, or files of one, is signed as a container is, as something else;
 * - an image has it in a label that its build sets, and each step of a build is looked at (`guardSteps`).
 *   It never makes a container ours.
 */
export class Identity {
  constructor(
    private readonly instanceId: string,
    private readonly signatures: Signatures
  ) {}

  /** What to give a container at its creation. `inherited`: the labels of its image. */
  ofContainer(
    owner: Owner,
    inherited: Claim
  ): { readonly labels: Record<string, string>; readonly mark: string } {
    return {
      labels: { ...emptyLabels(inherited ?? {}), ...ownerLabels(owner), [instanceLabel]: this.instanceId },
      mark: markPrefix + this.#sign('container', owner)
    }
  }

  /**
   * What to give a container that keeps volumes of one that goes, see `VolumeHolders`, or files of one that comes, see
   * `FileHolders`. It is none of the owner's containers.
   */
  ofHolder(owner: Owner): { readonly labels: Record<string, string>; readonly mark: string } {
    return {
      labels: { ...ownerLabels(owner), [imageInstanceLabel]: this.instanceId },
      mark: markPrefix + this.#sign('holder', owner)
    }
  }

  ofNetwork(owner: Owner, name: string): Record<string, string> {
    return this.#ofNamed('network', owner, name)
  }
  ofVolume(owner: Owner, name: string): Record<string, string> {
    return this.#ofNamed('volume', owner, name)
  }

  /** No deployment among them: it would keep every build from using the cache. Keys that do not apply are emptied. */
  ofImage({ projectId, applicationId, databaseId }: Owner): Record<string, string> {
    const owner = { projectId, applicationId, databaseId }
    return {
      ...emptyLabels(),
      ...ownerLabels(owner),
      [imageInstanceLabel]: this.instanceId,
      [signatureLabel]: this.#sign('image', owner)
    }
  }

  container({ Config: { Labels: labels }, HostConfig: host }: InspectedContainer): Owner | undefined {
    if (!this.claimsContainer(labels)) return undefined
    const owner = claimedOwner(labels ?? {})
    return isOfEarlierRelease(host) || this.#isSigned('container', owner, markOf(host)) ? owner : undefined
  }

  holder({ Config: { Labels: labels }, HostConfig: host }: InspectedContainer): Owner | undefined {
    if (labels?.[imageInstanceLabel] !== this.instanceId) return undefined
    const owner = claimedOwner(labels)
    return this.#isSigned('holder', owner, markOf(host)) ? owner : undefined
  }

  /** For telling a lost key from an impostor. */
  claimsContainer(labels: Claim): boolean {
    return labels?.[instanceLabel] === this.instanceId
  }

  network(network: Named): Owner | undefined {
    return this.#named('network', network)
  }
  volume(volume: Named): Owner | undefined {
    return this.#named('volume', volume)
  }

  /** `isPulled`: it has come from a registry, whose word an unsigned label is. */
  image(labels: Claim, isPulled: boolean): Owner | undefined {
    if (labels?.[imageInstanceLabel] !== this.instanceId) return undefined
    const owner = claimedOwner(labels)
    const signature = labels[signatureLabel]
    // Earlier releases signed nothing. What is built now is, or its build is ended.
    const isOurs = signature ? this.#isSigned('image', owner, signature) : !isPulled
    return isOurs ? owner : undefined
  }

  #ofNamed(kind: Kind, owner: Owner, name: string): Record<string, string> {
    return {
      ...ownerLabels(owner),
      [instanceLabel]: this.instanceId,
      [signatureLabel]: this.#sign(kind, owner, name)
    }
  }

  #named(kind: Kind, { Name: name, Labels: labels }: Named): Owner | undefined {
    if (labels?.[instanceLabel] !== this.instanceId) return undefined
    const owner = claimedOwner(labels)
    const signature = labels[signatureLabel]
    // Earlier releases signed none. Those that images make (VOLUME) have no labels, so no tenant can make one unsigned.
    return signature === undefined || this.#isSigned(kind, owner, signature, name) ? owner : undefined
  }

  #sign(kind: Kind, owner: Owner, name = ''): string {
    return this.signatures.sign(this.#statement(kind, owner, name))
  }
  #isSigned(kind: Kind, owner: Owner, signature: string, name = ''): boolean {
    return this.signatures.verify(this.#statement(kind, owner, name), signature)
  }
  #statement(kind: Kind, owner: Owner, name: string): string {
    return JSON.stringify([kind, this.instanceId, ownerText(owner), name])
  }
}

/** Whether some platform made it, this one or another on the same engine, and not a build or a person. */
export const isMadeByPlatform = (host: Host): boolean =>
  (host.ContainerIDFile ?? '').startsWith(markPrefix) || isOfEarlierRelease(host)

const markOf = ({ ContainerIDFile: text = '' }: Host): string =>
  text.startsWith(markPrefix) ? text.slice(markPrefix.length) : ''

/**
 * Containers of releases that signed nothing go on being ours. Those are known by their host configuration too: with
 * these options together only such a release created one, whose labels it had set itself, every key of them.
 */
function isOfEarlierRelease({
  ContainerIDFile: mark,
  Init: init,
  LogConfig: log,
  RestartPolicy: policy,
  SecurityOpt: security
}: Host): boolean {
  const { 'max-size': size, 'max-file': files } = (log?.Config ?? {}) as Record<string, string | undefined>
  return (
    !mark &&
    init === true &&
    log?.Type === 'json-file' &&
    size === '10m' &&
    files === '3' &&
    (policy?.Name === 'unless-stopped' || policy?.Name === 'no') &&
    security?.includes('no-new-privileges:true') === true
  )
}
