import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  buildTypeMissing: [
    409,
    'E_BUILD_TYPE_MISSING',
    'there is no builder for the build type {type}: available are {available}',
    'choose one of them, or turn on the plugin that provides {type}'
  ],
  buildTimeout: [
    409,
    'E_BUILD_TIMEOUT',
    'the build was stopped after {minutes} minutes, the limit of BUILD_TIMEOUT_MINUTES',
    'make it faster or raise the limit'
  ],
  pullTimeout: [
    409,
    'E_IMAGE_PULL_TIMEOUT',
    'the pull of {image} was stopped after {minutes} minutes, the limit of IMAGE_PULL_TIMEOUT_MINUTES',
    'raise it, or load the image into the engine'
  ],
  diskShort: [
    409,
    'E_BUILD_DISK_SHORT',
    'only {free} are free on {what} ({path}), and nothing is built or pulled with less than {floor}',
    'free space (docker system df shows what takes it; docker image prune removes unused images), make the disk larger, or lower disk_floor_mib of the builds plugin'
  ],
  buildRanShort: [
    409,
    'E_BUILD_DISK_SHORT',
    'the build was stopped: only {free} were left on {what} ({path}){copies}{part}',
    'make it write less (remove files in the RUN step that makes them), free space (docker system df shows what takes it), make the disk larger, or lower disk_floor_mib of the builds plugin'
  ],
  pullRanShort: [
    409,
    'E_BUILD_DISK_SHORT',
    'the pull was stopped: only {free} were left on {what} ({path}){copies}',
    'free space (docker system df shows what takes it; docker image prune removes unused images), make the disk larger, use a smaller image, or lower disk_floor_mib of the builds plugin'
  ],
  buildTooLarge: [
    409,
    'E_BUILD_DISK_LIMIT',
    'the build was stopped: it has written {written}, and may write {limit}',
    'make it write less (remove files in the RUN step that makes them, copy only what is needed), or raise build_disk_mib of the builds plugin'
  ],
  buildUncountable: [
    409,
    'E_BUILD_DISK_LIMIT',
    'the build was stopped: the build engine of its project has so many files that what it writes cannot be measured in time',
    'make it leave fewer (each hard link is one) in its image and its cache mounts, of which those that were unused have been cleared'
  ],
  waitedTooLong: [409, 'E_BUILD_WAIT', 'the build was stopped after {minutes} minutes of {reason}; {remedy}'],
  imageOfOthers: [
    409,
    'E_IMAGE_FOREIGN',
    'image {image} was built for another application and cannot be used as a source'
  ],
  imageRoom: [
    409,
    'E_BUILD_DISK_SHORT',
    'the image {image} takes {needs} when it is unpacked, and {what} ({path}) has {free} free, of which {floor} stay free{others}',
    'free space (docker system df shows what takes it), make the disk larger, use a smaller image, or lower disk_floor_mib of the builds plugin'
  ],
  roomDisputed: [
    409,
    'E_BUILD_DISK_SHORT',
    'the deployment was stopped: another owner has waited long for room on the disk of the Docker Engine, and the deployments of this one that are under way hold most of it, {held}',
    'deploy again, fewer at a time or from smaller images, or make the disk larger'
  ],
  imageSparse: [
    409,
    'E_IMAGE_FORMAT',
    'the image {image} has sparse files in a layer, which may unpack to any size: pack it without --sparse'
  ],
  imageUnclear: [
    409,
    'E_IMAGE_FORMAT',
    'the image {image} has a layer that is no archive as current engines write it, so what it unpacks to is unknown',
    'build and push it anew with a current engine'
  ],
  imageUnlike: [
    422,
    'E_IMAGE_BROKEN',
    'the Docker Engine reads the configuration of {image} in another way than it is written to be read, so the image is not used',
    'build and push it anew'
  ],
  registryUnresolved: [
    502,
    'E_REGISTRY_UNKNOWN',
    'the host name of the registry {registry} could not be resolved to pull {image}: {reason}',
    'check its spelling and the DNS settings of this machine, load the image into the engine, or, if the engine alone knows the registry, name {registry} without its port in GIT_PRIVATE_HOSTS'
  ],
  registryUnanswering: [
    502,
    'E_REGISTRY_UNREACHABLE',
    'the registry {registry} was asked over TLS before {image} is pulled, and did not answer: {reason}',
    'check its host and port, load the image into the engine, or, if the engine alone reaches the registry or it speaks plain HTTP, name it without its port in GIT_PRIVATE_HOSTS'
  ],
  registryRedirect: [
    502,
    'E_REGISTRY_ANSWER',
    'the registry {registry} redirects requests for {image}, which is not followed: {reason}',
    'check the host and port'
  ],
  badImageName: [
    400,
    'E_IMAGE_REFERENCE',
    '{image} is not the name of an image',
    'write name:tag, registry.example.com/name:tag or name@sha256:…; ids are no names'
  ],
  badDockerfile: [
    422,
    'E_BUILD_DOCKERFILE',
    'the Dockerfile {dockerfile} is not valid: line {line}: {reason}'
  ],
  dockerfileBuildKit: [
    422,
    'E_BUILD_BUILDKIT',
    'line {line} of the Dockerfile {dockerfile} asks for BuildKit ({reason}), but images are built here by the classic builder, whose limits on memory and CPU hold',
    'write the step without it, or have build_engine of the builds plugin name an engine that knows it'
  ],
  dockerfileLabel: [
    422,
    'E_BUILD_LABELS',
    'line {line} of the Dockerfile {dockerfile} sets the label {label}, by which the platform knows whose a thing is',
    'take that LABEL out'
  ],

  otherPlatformMade: [
    409,
    'E_BUILD_PLATFORM',
    'the build has made an image for {made}, and build_platform of the application asks for {wanted}: its build type, or a FROM --platform of the Dockerfile, chooses another one',
    'change that, or clear build_platform'
  ],
  imageNotRunnable: [
    409,
    'E_BUILD_PLATFORM',
    'the image is made for {made}, and this machine is {machine} and emulates no {architecture}',
    'clear build_platform of the application (and --platform of the last FROM), or register an emulator (docker run --privileged --rm tonistiigi/binfmt --install {architecture}, with /proc/sys/fs/binfmt_misc mounted on the machine)'
  ],
  platformOfClassic: [
    409,
    'E_BUILD_PLATFORM',
    'build_platform of the application asks for {wanted}, and the classic builder builds for its own machine alone ({machine}): have the admin set build_engine of the builds plugin to buildkit, dockerd or auto, or clear build_platform'
  ],
  targetMissing: [
    409,
    'E_BUILD_TARGET',
    '{dockerfile} has no stage {target}, which build_target of the application names: its stages are {stages}'
  ],

  toolMissing: [
    409,
    'E_BUILD_TOOL_MISSING',
    '{program} was not found on the PATH of the platform: {what}. {install}; or choose another build type'
  ],
  toolFailed: [
    422,
    'E_BUILD_TOOL',
    '{program} {how}: {reason}; the lines before this one in the build log say more'
  ],
  toolNoImage: [
    422,
    'E_BUILD_TOOL_RESULT',
    '{program} ended without an error, but the Docker Engine has no image {image}',
    'see whether {program} uses another engine'
  ],
  toolNotPortable: [
    409,
    'E_BUILD_TOOL_MISSING',
    '{path} on the machine of the platform does not run in the build engine of this project: {reason}',
    'put the program there that the releases of {program} have for Linux, which is one file that needs no libraries, or set build_engine of the builds plugin to classic'
  ],
  toolImage: [
    409,
    'E_BUILD_TOOL_IMAGE',
    '{program} builds with the image {image}, which did not come into the build engine of this project: {reason}',
    'check its name (builder_image and custom_buildpacks of the application, or what the builder names), give the project an account of that registry (PUT /api/projects/<id>/registries), or load the image into the Docker Engine of the platform (docker pull {image}), from which build engines are given it'
  ],
  toolNoFile: [
    422,
    'E_BUILD_TOOL_RESULT',
    '{program} ended without an error, but its {what} cannot be used: {reason}',
    'see that the installed {program} is a current one'
  ],
  toolSecrets: [
    409,
    'E_BUILD_VARIABLE',
    'railpack.json names secrets that are no variables of the application: {names}',
    'add them to its variables, or take them out of railpack.json'
  ],
  toolDenied: [
    409,
    'E_BUILD_TOOL_DENIED',
    '{program} was not given an image by its registry: {reason}; the program is given no account of a registry',
    'name a public image, load it into the engine, or put the account into the config.json of the folder that DOCKER_CONFIG of the platform names'
  ],
  buildKitAway: [
    409,
    'E_BUILD_BUILDKIT_AWAY',
    'railpack found no BuildKit at {address}',
    'start one (docker run -d --name buildkit --privileged -p 127.0.0.1:1234:1234 moby/buildkit --addr tcp://0.0.0.0:1234), or set BUILDKIT_HOST to the address of yours'
  ],
  badBuildpack: [409, 'E_BUILD_BUILDPACK', 'the buildpack {buildpack} is not used: {reason}'],
  siteMissing: [
    409,
    'E_BUILD_SITE_MISSING',
    'there is no site to serve: an index.html was looked for in {folders}; {found}',
    'name the folder by the variable STATIC_DIRECTORY, or set the root directory'
  ],
  siteNotBuilt: [
    422,
    'E_BUILD_SITE_MISSING',
    '{command} left nothing to serve: an index.html was looked for in {folders}; found were: {found}',
    'name the folder by the variable STATIC_DIRECTORY'
  ],
  staticImage: [
    502,
    'E_BUILD_STATIC_IMAGE',
    'the image that static sites are served by, or built in, cannot be had: {reason}; or name another one by static_image and static_build_image of the builds plugin'
  ],
  badPackage: [409, 'E_BUILD_PACKAGE', 'package.json is not valid: {reason}'],
  badChoice: [409, 'E_BUILD_VARIABLE', 'the variable {name} is {value}', 'write {allowed}'],
  cacheBusy: [409, 'E_BUILD_CACHE_BUSY', '{reason}'],

  applicationGone: [
    404,
    'E_APPLICATION_NOT_FOUND',
    'application {applicationId} does not exist in this project'
  ],
  badRepository: [
    400,
    'E_SOURCE_ADDRESS',
    '{repo} is no address of a Git repository',
    'write https://host/owner/repository.git, git@host:owner/repository.git or ssh://git@host:port/owner/repository.git'
  ],
  badBranch: [400, 'E_SOURCE_BRANCH_NAME', 'invalid branch name: {branch}'],
  badCommit: [400, 'E_SOURCE_COMMIT_NAME', '{commit} is not the full name of a commit'],
  hostPrivate: [
    409,
    'E_SOURCE_HOST_PRIVATE',
    'the {use} {host} has the private or local address {address}, which builds do not connect to',
    'add it to GIT_PRIVATE_HOSTS (a list of hosts and ranges, or allow) if it is meant'
  ],
  hostMetadata: [
    409,
    'E_SOURCE_HOST_METADATA',
    'the {use} {host} has the address {address}, which gives cloud machines their credentials and is never connected to'
  ],
  hostUnknown: [
    502,
    'E_SOURCE_HOST_UNKNOWN',
    'the {use} {host} could not be resolved ({reason})',
    'check its spelling and the DNS settings of this machine'
  ],
  unreachable: [
    502,
    'E_SOURCE_UNREACHABLE',
    'the repository {repo} could not be reached: {reason}',
    'check that its host is up and that this machine may connect to it'
  ],
  tls: [
    502,
    'E_SOURCE_TLS',
    'no secure connection to the repository {repo}: {reason}',
    'check the certificate of its host'
  ],
  timeout: [
    502,
    'E_SOURCE_TIMEOUT',
    'cloning {repo} was stopped after {minutes} minutes',
    'check the connection to its host, or make the repository smaller'
  ],
  redirect: [
    502,
    'E_SOURCE_REDIRECT',
    'the repository {repo} redirects to {target}, which is not followed: {reason}'
  ],
  needsCredentials: [
    409,
    'E_SOURCE_CREDENTIALS',
    'the repository {repo} does not exist or is private',
    'check the address, or give the application an access token that may read it'
  ],
  credentialsRefused: [
    409,
    'E_SOURCE_CREDENTIALS',
    'the host of {repo} refused the access token: it may have expired or lack the right to read this repository',
    'give the application a new one'
  ],
  forbidden: [
    409,
    'E_SOURCE_FORBIDDEN',
    'the host of {repo} forbids reading it (403)',
    'check what the access token is allowed to do, and whether the host blocks this machine'
  ],
  repositoryMissing: [
    409,
    'E_SOURCE_NOT_FOUND',
    'the repository {repo} was not found',
    'check the address; if it is private, give the application an access token that may read it'
  ],
  branchMissing: [
    409,
    'E_SOURCE_BRANCH',
    'branch {branch} does not exist in {repo}',
    'push it, or set another branch'
  ],
  empty: [
    409,
    'E_SOURCE_EMPTY',
    'nothing to clone from {repo}: it has no commits yet, or it is not the address of a Git repository'
  ],
  commitMissing: [
    409,
    'E_SOURCE_COMMIT',
    'commit {commit} does not exist in {repo} any more: it was probably replaced by a forced push',
    'deploy the branch instead'
  ],
  tooLarge: [
    409,
    'E_SOURCE_SIZE',
    'the repository {repo} is larger than {limit} MiB, the checkout_mib of the builds plugin',
    'take large files out of it or raise the limit'
  ],
  tooManyFiles: [
    409,
    'E_SOURCE_SIZE',
    'the repository {repo} has more than {limit} files and directories, more than a build may have',
    'take generated files out of it'
  ],
  archiveTooLarge: [
    409,
    'E_BUILD_ARCHIVE',
    'the Dockerfile {dockerfile} {adds} {path}, and what it ADDs unpacks to more than {limit} MiB, as much as a build may write (build_disk_mib, and what the disks have free)',
    'take less, or fetch and unpack it in a RUN step'
  ],
  archiveSparse: [
    409,
    'E_BUILD_ARCHIVE',
    'the Dockerfile {dockerfile} {adds} {path}, an archive with sparse files, which may unpack to any size: pack it without --sparse'
  ],
  archiveUnclear: [
    409,
    'E_BUILD_ARCHIVE',
    'the Dockerfile {dockerfile} {adds} {path}, an archive that may be read in several ways, so what it unpacks to is unknown: pack it anew, or COPY it and unpack it in a RUN step'
  ],
  archiveUnreadable: [
    409,
    'E_BUILD_ARCHIVE',
    'the Dockerfile {dockerfile} {adds} {path}, an archive that is damaged: pack it anew, or COPY it, which does not unpack'
  ],
  archiveProgram: [
    409,
    'E_BUILD_ARCHIVE',
    'the Dockerfile {dockerfile} {adds} {path}, which the platform cannot look into without the program {program}',
    'install it on the machine of the platform, or pack the archive with gzip'
  ],
  archiveUnmeasured: [
    409,
    'E_BUILD_ARCHIVE',
    'the Dockerfile {dockerfile} {adds} {path}, and how much that unpacks to could not be found out: {reason}',
    'make the archive smaller, or fetch and unpack it in a RUN step'
  ],
  pathsTooLong: [
    409,
    'E_SOURCE_SIZE',
    'the paths of the files and directories of the repository {repo} are longer than {limit} MiB together, more than a build may have',
    'take generated files out of it'
  ],
  tooMuchMemory: [
    409,
    'E_SOURCE_SIZE',
    'reading the repository {repo} was stopped: its host sent something that takes more than {limit} MiB of memory',
    'check the address, and take very large files out of the repository'
  ],
  notGit: [
    502,
    'E_SOURCE_ANSWER',
    'the host of {repo} does not answer as a Git server does: {reason}',
    'check the address, and any proxy in between'
  ],
  damaged: [
    502,
    'E_SOURCE_DAMAGED',
    'what the host of {repo} sent is incomplete or damaged: {reason}',
    'deploy again, and if it stays so, have the repository checked on its host (git fsck)'
  ],
  diskFull: [
    507,
    'E_SOURCE_DISK_FULL',
    'the repository {repo} could not be checked out, the disk of BUSBAR_DIR is full: {reason}',
    'free space on it, or lower checkout_mib of the builds plugin'
  ],
  badFileName: [
    409,
    'E_SOURCE_FILE_NAME',
    'the repository {repo} holds a path that this machine cannot write: {reason}',
    'rename it'
  ],
  gitFailed: [502, 'E_SOURCE_GIT', 'cloning {repo} failed: {reason}'],
  gitTooOld: [503, 'E_SOURCE_GIT_VERSION', 'git {version} is too old: {wanted} or newer is needed{why}'],

  badFileAddress: [
    409,
    'E_REMOTE_FILE_ADDRESS',
    '{url} is no address of a remote file',
    'write https://host/path'
  ],
  fileRedirect: [
    409,
    'E_REMOTE_FILE_REDIRECT',
    'the remote file {url} redirects to {target}, which is not followed: {reason}'
  ],
  fileStatus: [
    409,
    'E_REMOTE_FILE_STATUS',
    'the remote file {url} was not handed out: its host answered {status}',
    'check the address'
  ],
  fileUnreachable: [
    502,
    'E_REMOTE_FILE_UNREACHABLE',
    'the remote file {url} could not be fetched: {reason}',
    'check the address, and try again'
  ],
  fileTimeout: [
    502,
    'E_REMOTE_FILE_TIMEOUT',
    'the remote file {url} was not fetched: {reason}',
    'check the connection to its host, or put the file into the repository'
  ],
  remoteFileTooLarge: [
    409,
    'E_REMOTE_FILE_SIZE',
    'the remote file {url} is larger than {limit} MiB, more than a remote file may be: fetch it in a RUN step'
  ],
  remoteFilesTooLarge: [
    409,
    'E_REMOTE_FILE_SIZE',
    'the files that ADD fetches are larger than {limit} MiB together, the checkout_mib of the builds plugin: fetch what is large in a RUN step, or raise the limit'
  ],
  remoteFileUnnamed: [
    422,
    'E_BUILD_DOCKERFILE',
    'nothing tells the name of the file at {url}, and the destination {destination} is a folder or could be one',
    'write the name of the file into the destination'
  ],
  remoteFileName: [
    422,
    'E_BUILD_DOCKERFILE',
    'the file at {url} is called {name}, which no file of an image can be: fetch it in a RUN step'
  ],
  fileDiskFull: [
    507,
    'E_REMOTE_FILE_DISK_FULL',
    'the remote file {url} could not be stored, the disk of BUSBAR_DIR is full',
    'free space on it'
  ],

  pathEscapes: [
    400,
    'E_SOURCE_PATH',
    '{what} is {path}, which leaves the repository',
    'give a path inside it, relative and without ..'
  ],
  linkEscapes: [
    409,
    'E_SOURCE_LINK',
    '{path} is a symbolic link that leads out of the source tree: replace it by the file itself'
  ],
  rootMissing: [
    409,
    'E_SOURCE_ROOT',
    'the root directory {path} does not exist in the repository; directories there are: {found}'
  ],
  dockerfileMissing: [409, 'E_SOURCE_DOCKERFILE', 'there is no Dockerfile at {path}; {found}'],
  badIgnore: [409, 'E_SOURCE_IGNORE', '{file} cannot be used: {reason}'],
  fileTooLarge: [
    409,
    'E_SOURCE_FILE_SIZE',
    '{path} is larger than {limit} KiB, more than a file of its kind needs'
  ]
})
