import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  noSocket: [
    503,
    'E_ENGINE_UNREACHABLE',
    'no Docker Engine at {address}: there is no such socket',
    'start dockerd, or set DOCKER_HOST to the address it listens on'
  ],
  notListening: [
    503,
    'E_ENGINE_UNREACHABLE',
    'no Docker Engine at {address}: nothing accepts connections there',
    'start dockerd, or set DOCKER_HOST to the address it listens on'
  ],
  permissionDenied: [
    503,
    'E_ENGINE_UNREACHABLE',
    'permission denied on {address}: the Docker Engine may be running, but the user of the platform must not use it',
    'add the user to the group that owns the socket (usually docker) and start the platform again'
  ],
  hostUnknown: [
    503,
    'E_ENGINE_UNREACHABLE',
    'the host of the Docker Engine at {address} could not be found',
    'correct DOCKER_HOST'
  ],
  noAnswer: [
    503,
    'E_ENGINE_UNREACHABLE',
    'the Docker Engine at {address} was asked to {task} and closed the connection or did not answer in time',
    'see whether dockerd is running and what its log says'
  ],
  answerLate: [
    503,
    'E_ENGINE_UNREACHABLE',
    'the Docker Engine was asked to {task} and has not finished its answer after {seconds} s',
    'see the log of dockerd, and what else keeps its machine busy'
  ],
  answerCut: [
    503,
    'E_ENGINE_UNREACHABLE',
    'the Docker Engine at {address} was asked to {task} and did not finish its answer: the connection was closed in the middle of it, or nothing more came',
    'see whether dockerd is running and what its log says'
  ],
  orphaned: [
    503,
    'E_ENGINE_UNREACHABLE',
    'the Docker Engine, which was killed, does not start the container {container}: processes that it has left there could not be ended',
    'try again in a moment; restart the machine of the engine if that does not help'
  ],
  badAddress: [
    503,
    'E_ENGINE_UNREACHABLE',
    'DOCKER_HOST is {address}, which is no address the platform can use',
    'give unix:///path/to/docker.sock or tcp://host:port'
  ],
  badCertificates: [
    503,
    'E_ENGINE_UNREACHABLE',
    'the certificates for the Docker Engine could not be read from DOCKER_CERT_PATH: {reason}'
  ],

  badInstanceId: [
    503,
    'E_INSTANCE_ID',
    '{place} does not hold the id of an installation: 8 to 64 letters, digits and hyphens'
  ],
  refused: [502, 'E_ENGINE_REFUSED', 'the Docker Engine refused to {task}: {reason}'],
  diskFull: [
    507,
    'E_ENGINE_DISK_FULL',
    'the Docker Engine could not {task}: its disk is full ({reason})',
    'remove unused images or enlarge the disk'
  ],
  containerMissing: [404, 'E_CONTAINER_MISSING', 'container {container} does not exist'],
  containerForeign: [
    409,
    'E_CONTAINER_FOREIGN',
    'container {container} was not made by this platform and is left alone; if it was, the key that signed it is missing',
    'restore keys.json, or put the earlier key into ENCRYPTION_KEYS'
  ],
  containerNotRunning: [
    409,
    'E_CONTAINER_NOT_RUNNING',
    'container {container} is {status}: it has no address until it runs'
  ],
  containerUnconnected: [
    409,
    'E_CONTAINER_UNCONNECTED',
    'container {container} has no address on any network'
  ],
  execCut: [
    502,
    'E_ENGINE_REFUSED',
    'what ran in container {container} was cut off before it ended: the container or the Docker Engine ended first'
  ],
  programMissing: [502, 'E_CONTAINER_PROGRAM', 'the container cannot run {program}: {reason}'],
  supervisorLost: [
    502,
    'E_ENGINE_REFUSED',
    'what ends terminals in container {container} was ended itself, or gave no answer'
  ],
  terminalLeft: [
    502,
    'E_ENGINE_REFUSED',
    '{count} processes of a terminal in container {container} did not end'
  ],
  pathMissing: [404, 'E_CONTAINER_PATH', 'container {container} has no {path}'],
  pathReadonly: [
    409,
    'E_CONTAINER_READONLY',
    'nothing can be written to {path} of container {container}: its root is read-only, and no volume is there'
  ],
  filesRefused: [
    422,
    'E_CONTAINER_FILES',
    'what was to be unpacked into {path} of container {container} was not taken: {reason}'
  ],
  filesCut: [
    502,
    'E_ENGINE_REFUSED',
    'what is read of {path} in container {container} was cut off before its end: the container or the Docker Engine ended first, or the files changed meanwhile'
  ],
  nameTaken: [
    409,
    'E_CONTAINER_NAME_TAKEN',
    'the container name {name} is taken by another container: {reason}'
  ],
  removalStuck: [
    502,
    'E_ENGINE_REFUSED',
    'the Docker Engine is still removing container {container} after {seconds} s',
    'see the log of dockerd'
  ],

  volumeForeign: [
    409,
    'E_VOLUME_FOREIGN',
    'the volume {volume} exists already and was not made for this',
    'rename or remove it (docker volume rm {volume})'
  ],
  volumeInUse: [409, 'E_VOLUME_IN_USE', 'the volume {volume} is in use: {reason}'],
  volumeNotEmptied: [
    503,
    'E_VOLUME_NOT_EMPTIED',
    'the files in the volume {volume} could not be removed in {minutes} minutes, or the Docker Engine went away meanwhile; what is left goes when it is removed again'
  ],
  volumeMissing: [404, 'E_VOLUME_MISSING', 'the volume {volume} does not exist'],
  volumesApart: [
    502,
    'E_ENGINE_REFUSED',
    'the engine keeps the volumes {volume} and {other} in different places, and they cannot be exchanged'
  ],
  exchangeFailed: [
    502,
    'E_ENGINE_REFUSED',
    'the files of the volume {volume} could not be exchanged: {reason}'
  ],
  badVolume: [400, 'E_VOLUME_NAME', '{volume} is not the name of a volume'],
  measuring: [
    503,
    'E_ENGINE_MEASURING',
    'the Docker Engine is measuring its disk for another request',
    'try again in a moment'
  ],

  networkNameTaken: [
    409,
    'E_NETWORK_NAME_TAKEN',
    'a Docker network called {name} exists already and does not belong to this project',
    'rename or remove it (docker network rm {name}), or give the project another slug'
  ],
  subnetsExhausted: [
    409,
    'E_NETWORK_SUBNETS_EXHAUSTED',
    'every /{prefix} subnet of {pools} is in use',
    'set BUSBAR_SUBNETS to a larger or a further private range (for example 10.201.0.0/16,10.202.0.0/16) or delete projects that are not needed'
  ],
  subnetsRouted: [
    409,
    'E_NETWORK_SUBNETS_EXHAUSTED',
    'no /{prefix} subnet of {pools} is free: {routes} of the engine\'s machine covers what no network has, and would take what is sent to the containers; set BUSBAR_SUBNETS to a private range that no route covers ("ip route show table all" lists them), or take the route away'
  ],
  networkInUse: [
    409,
    'E_NETWORK_IN_USE',
    'the network {name} still connects {containers}',
    'stop and remove them first'
  ],

  imageMissing: [404, 'E_IMAGE_MISSING', 'image {image} does not exist on the Docker Engine'],
  imageDeclares: [
    422,
    'E_IMAGE_DECLARES',
    'image {image} declares {what}, and no container is made from one with more than {most}: {remedy}, and build the image anew'
  ],
  imageInUse: [409, 'E_IMAGE_IN_USE', 'image {image} is in use: {reason}'],
  imageForeign: [409, 'E_IMAGE_FOREIGN', 'image {image} was built by another platform and is left alone'],
  imageIncomplete: [
    409,
    'E_IMAGE_INCOMPLETE',
    'the Docker Engine does not hold all layers of an image that it was handed without them: {reason}'
  ],
  imageArchive: [
    422,
    'E_IMAGE_ARCHIVE',
    'the Docker Engine does not take the image as it is: {reason}',
    'build and push it anew with a current engine'
  ],
  imageArchivePlatform: [
    409,
    'E_IMAGE_PLATFORM',
    'the image is for another kind of machine than that of the engine: {reason}',
    'push it for that one too, or name another image'
  ],
  badReference: [
    400,
    'E_IMAGE_REFERENCE',
    '{image} is not the name of an image',
    'write name:tag, registry.example.com/name:tag or name@sha256:…'
  ],

  imageNotFound: [
    404,
    'E_IMAGE_NOT_FOUND',
    'image {image} does not exist in the registry {registry}: it has no {version} of {name}, or no such repository',
    'check name and tag'
  ],
  repositoryNotFound: [
    404,
    'E_IMAGE_NOT_FOUND',
    'image {image} does not exist in the registry {registry}: there is no repository {name}',
    'check the name'
  ],
  imageBroken: [
    502,
    'E_IMAGE_BROKEN',
    'the registry {registry} has {image} incomplete or damaged: {reason}',
    'push the image again'
  ],
  imageOutdated: [
    409,
    'E_IMAGE_FORMAT',
    'image {image} has a format that the Docker Engine does not know: {reason}',
    'build and push it anew with a current engine'
  ],
  registryDenied: [
    409,
    'E_REGISTRY_DENIED',
    'the registry {registry} does not hand out the base image {image} to everybody: it needs credentials, which builds do not have, or does not exist',
    'check the name, use a public base image, or load it into the engine'
  ],
  registryUnreachable: [
    502,
    'E_REGISTRY_UNREACHABLE',
    'the registry {registry} could not be reached to pull {image}: {reason}',
    'check the network and the proxy settings of dockerd, or load the image into the engine'
  ],
  registrySilent: [
    502,
    'E_REGISTRY_UNREACHABLE',
    'the registry {registry} did not answer in time to pull {image}: {reason}',
    'see whether it is well and its host and port are right, and whether a firewall is in between'
  ],
  registryUnknown: [
    502,
    'E_REGISTRY_UNKNOWN',
    'the host name of the registry {registry} could not be resolved to pull {image}: {reason}',
    'check its spelling and the DNS servers of dockerd, or load the image into the engine'
  ],
  registryTls: [
    502,
    'E_REGISTRY_TLS',
    'the registry {registry} could not be trusted to pull {image}: {reason}; renew its certificate if it has expired or names another host; if its authority is your own, put the certificate of that into /etc/docker/certs.d/{registry}/ca.crt on the machine of the engine'
  ],
  registryPlainHttp: [
    502,
    'E_REGISTRY_PLAIN_HTTP',
    'the registry {registry} speaks plain HTTP, by which {image} is not pulled',
    'give the registry a certificate, or list {registry} under insecure-registries in the daemon.json of dockerd'
  ],
  registryAnswer: [
    502,
    'E_REGISTRY_ANSWER',
    'what answers at {registry} is no image registry, or not a working one: {reason}',
    'check the host and port in {image}'
  ],
  registryFailing: [
    502,
    'E_REGISTRY_FAILING',
    'the registry {registry} failed to hand out {image}: {reason}',
    'try again later, or see its log'
  ],
  registryLimit: [
    502,
    'E_REGISTRY_LIMIT',
    'the registry {registry} limits how often images are pulled',
    'wait, or give the credentials of an account with a higher limit'
  ],
  imagePlatform: [
    409,
    'E_IMAGE_PLATFORM',
    'image {image} does not exist for the kind of machine the engine runs on: {reason}',
    'push it for that one too, or name another image'
  ],
  pullFailed: [502, 'E_IMAGE_PULL', 'image {image} could not be pulled: {reason}'],

  buildCommand: [
    422,
    'E_BUILD_COMMAND',
    'the build stopped: {command} ended with exit code {code}; the lines before this one in the build log say why'
  ],
  buildKilled: [
    422,
    'E_BUILD_KILLED',
    'the build stopped: {command} was killed (exit code 137), most likely because it needed more memory than the {memory} MiB a build may use',
    'make the step need less, or raise the limit of the builds plugin'
  ],
  buildDockerfile: [422, 'E_BUILD_DOCKERFILE', 'the Dockerfile {dockerfile} is not valid: {reason}'],
  buildKit: [
    422,
    'E_BUILD_BUILDKIT',
    'the Dockerfile asks for BuildKit ({reason}), but images are built here by the classic builder, whose limits on memory and CPU hold',
    'write the step without it'
  ],
  buildCopy: [
    422,
    'E_BUILD_COPY',
    'the build stopped: {reason}; the file must be inside the build context and must not be left out by .dockerignore'
  ],
  buildFailed: [422, 'E_BUILD_FAILED', 'the build failed: {reason}'],
  buildDiffers: [
    502,
    'E_BUILD_DIFFERS',
    'the build was ended and its image removed: at line {line} of {dockerfile} the Docker Engine read {said} where {expected} was handed over',
    'write that instruction in a plainer way, and if it is plain already, report this with the version of the engine'
  ],
  buildLabels: [
    422,
    'E_BUILD_LABELS',
    'the build was ended and its image removed: its Dockerfile, or an image it builds on, sets the label {label}, by which the platform knows whose an image is',
    'take that LABEL out, or build on another image'
  ],
  buildCut: [
    502,
    'E_BUILD_CUT',
    'the Docker Engine ended the build without a result',
    'see whether dockerd was restarted, and build again'
  ]
})
