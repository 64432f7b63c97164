# pkgs.callPackage ./deploy/packages { }
{ lib, stdenv, rustPlatform, cargo, rustc }:

stdenv.mkDerivation {
  pname = "trimbench";
  version = "0.1.0";
  src = lib.cleanSource ../..;
  cargoDeps = rustPlatform.importCargoLock { lockFile = ../../Cargo.lock; };
  nativeBuildInputs = [ cargo rustc rustPlatform.cargoSetupHook ];
  makeFlags = [ "LOCKED=--frozen" "PREFIX=$(out)" ];
  buildFlags = [ "build" "man" ];
  doCheck = true;
  checkTarget = "test-pure";
  installTargets = [ "install" "install-library" ];
  meta = {
    description = "Measure and avoid stalls caused by TRIM";
    homepage = "https://github.com/trimbench/trimbench";
    license = with lib.licenses; [ mit asl20 ];
    mainProgram = "trimbench";
    platforms = lib.platforms.linux;
  };
}
